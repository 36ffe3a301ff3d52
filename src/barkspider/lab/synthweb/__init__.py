"""A web computed from a seed number, served on loopback over real sockets and a real name server.

How the data moves:

1. `WebSpec` says how large the web is and which hazards it has; `sites` turns it into `Tables`: the sizes
   of hosts, the vocabulary, running text. Nothing is stored per page.
2. `model` knows the web in integers: which host a page is on, where its links lead, what robots.txt closes.
   `text` writes a page's URL and reads it back; `render` writes its HTML. All are kernels without the GIL.
3. `Web` puts them together: `answer` takes a `Request` (host, path, cookie) and gives an `Answer`; requests
   for domains beyond the regular ones go to `hazards`. Its other methods are the truth that tests compare
   a crawl with; `reach` searches the web breadth-first, `write_graph` stores a part of it as a graph,
   `write_domain_graph` the links between its domains. `StoredWeb` (`stored`) does the same for a graph in a file.
4. `Server` listens on 127.x.y.z, one address for each server of the web: `http` parses requests and sends
   answers, `dns` resolves names, `certificates` signs for HTTPS, `log` records requests.
5. `running_web` runs a `Server` in a process of its own and tells which settings lead a crawler to it, `running_graph`
   one of a stored graph.

Where these are: `spec`, `web`, `server`, `process`; requests and answers in `answer`, graphs in `graph`. `names` has the
vocabulary, `prose` the running text, `robots` the texts of robots.txt, `changes` by which rates
pages change; `kernels` says how this package compiles.
"""

from barkspider.lab.synthweb.answer import Answer, Manner, Request
from barkspider.lab.synthweb.graph import domain_edges, write_domain_graph, write_graph
from barkspider.lab.synthweb.log import LoggedRequest, read_log
from barkspider.lab.synthweb.process import RunningWeb, running_graph, running_web
from barkspider.lab.synthweb.server import Server
from barkspider.lab.synthweb.spec import HAZARDS, WebSpec, parse_hazards
from barkspider.lab.synthweb.stored import StoredWeb
from barkspider.lab.synthweb.web import Web

__all__ = [
    "HAZARDS",
    "Answer",
    "LoggedRequest",
    "Manner",
    "Request",
    "RunningWeb",
    "Server",
    "StoredWeb",
    "Web",
    "WebSpec",
    "domain_edges",
    "parse_hazards",
    "read_log",
    "running_graph",
    "running_web",
    "write_domain_graph",
    "write_graph",
]
