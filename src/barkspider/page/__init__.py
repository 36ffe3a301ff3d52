"""What is in a page: is it HTML (`is_html`), which characters, which links, what it asks (`read_page`).

Bytes come in with the headers that describe them and a `Page` goes out; nothing here knows of the crawl.
Every step is linear in the size of the page and keeps no more than the page itself and its links.
"""

from barkspider.page.charset import find_charset
from barkspider.page.read import Page, read_page
from barkspider.page.sniff import is_html

__all__ = ["Page", "find_charset", "is_html", "read_page"]
