"""Redirects of every kind, with the four that a crawler loses which knows URLs by their normal form."""

from __future__ import annotations

import re

from barkspider.lab.synthweb.answer import NOT_FOUND, Answer, Request, redirect
from barkspider.lab.synthweb.hazards.base import Hazard


class Redirects(Hazard):
    """Domain 0: relative, absolute, chains, loops, to HTTPS. Domains 1 to 4: the lost kinds.

    1: `/` to `/index.html`, which is the page. 2: the bare domain to www. and back with a cookie, then the page.
    3: a session id is added, then the page. 4: to itself with a cookie, then the page.
    """

    name = "redirects"
    domains = 5
    pages = 5
    """Plain pages that each of the domains 1 to 4 has behind its home."""

    def entries(self) -> list[str]:
        home, index, bare, session, cookie = self.names
        return [
            f"http://www.{home}/",
            f"http://{index}/",
            f"http://{bare}/",
            f"http://{session}/",
            f"http://{cookie}/",
        ]

    def answer(self, request: Request) -> Answer:
        if request.number == 0:
            return self._plain_kinds(request)
        name = self.names[request.number]
        match = re.fullmatch(r"/page-(\d)\.html", request.target)
        if match and 1 <= int(match[1]) <= self.pages:
            return self.page(f"Page {match[1]} of {name}", ["/"])
        home = self.page(f"Home of {name}", [f"/page-{k}.html" for k in range(1, self.pages + 1)])
        lost = (self._to_index, self._to_www_and_back, self._add_session, self._check_cookie)[
            request.number - 1
        ]
        return lost(request, home)

    def _plain_kinds(self, request: Request) -> Answer:
        origin = f"{request.scheme}://{request.host}"
        fixed = {
            "/relative": redirect("target-1.html"),
            "/up/relative": redirect("../target-2.html", 307),
            "/rooted": redirect("/target-3.html", 301),
            "/absolute": redirect(f"{origin}/target-4.html", 301),
            "/no-scheme": redirect(f"//{request.host}/target-5.html", 308),
            "/away": redirect(self.ground.page_url(0), 303),
            "/loop-a": redirect("/loop-b"),
            "/loop-b": redirect("/loop-a"),
            "/self": redirect("/self"),
            "/fragment": redirect("/target-6.html#here"),
            "/nowhere": redirect(""),
            "/file": redirect("file:///etc/passwd"),
        }
        if self.ground.has_https:
            secure = f"https://{request.host}/secure"
            fixed["/secure"] = (
                self.page("Secure", ["/"]) if request.scheme == "https" else redirect(secure, 301)
            )
        if request.target == "/":
            return self.page("Moved", [*fixed, "/chain-5", "/chain-30"])
        chain = re.fullmatch(r"/chain-(\d{1,2})", request.target)
        if chain:
            left = int(chain[1])
            return redirect(f"/chain-{left - 1}") if left else self.page("End of the chain", ["/"])
        if re.fullmatch(r"/target-[1-6]\.html", request.target):
            return self.page(f"Target {request.target}", ["/"])
        return fixed.get(request.target, NOT_FOUND)

    def _to_index(self, request: Request, home: Answer) -> Answer:
        answers = {"/": redirect("/index.html"), "/index.html": home}
        return answers.get(request.target, NOT_FOUND)

    def _to_www_and_back(self, request: Request, home: Answer) -> Answer:
        if request.target != "/":
            return NOT_FOUND
        domain = self.names[2]
        if "seen=1" in request.cookie:
            return home
        if request.before == "www":
            return redirect(f"http://{domain}/", 302, ("Set-Cookie", f"seen=1; Domain={domain}; Path=/"))
        return redirect(f"http://www.{domain}/")

    def _add_session(self, request: Request, home: Answer) -> Answer:
        if re.fullmatch(r"/\?PHPSESSID=[0-9a-f]{32}", request.target):
            return home
        key = f"{self.ground.draw(4, 1):016x}{self.ground.draw(4, 2):016x}"
        return redirect(f"/?PHPSESSID={key}") if request.target == "/" else NOT_FOUND

    def _check_cookie(self, request: Request, home: Answer) -> Answer:
        if request.target != "/":
            return NOT_FOUND
        return home if "check=1" in request.cookie else redirect("/", 302, ("Set-Cookie", "check=1; Path=/"))
