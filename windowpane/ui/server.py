"""The server of the page: read-only, on the loopback address unless told otherwise, then with a token.

Paths: ``/`` the page, ``/page.css``, ``/page.js``, ``/data`` all figures, ``/search?key=`` what a key holds, ``/events`` a
number whenever there are new ones. There is no other path, and no other method than GET.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from windowpane.errors import WindowpaneError
from windowpane.ui.document import ASSETS, asset, served_page
from windowpane.ui.reader import Reader

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Page:
    """The page of some checkpoints, as long as it is not closed.

    Attributes:
        url: where it is shown, with the token where one is needed.
    """

    def __init__(self, checkpoints: Sequence[str], port: int, host: str, queries: Sequence[Any] = ()) -> None:
        """Open the port; ``queries`` run in this process, in the order of their checkpoints."""
        self._reader = Reader(checkpoints, queries)
        self._token = None if host in _LOOPBACK else secrets.token_urlsafe(24)
        self._hosts = {*_LOOPBACK, host} if self._token is None else None
        self._socket = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self._socket.getsockname()[1]}/" + ("" if self._token is None else f"?token={self._token}")
        routes = [
            Route("/", self._page),
            Route("/data", self._data),
            Route("/search", self._search),
            Route("/events", self._events),
        ]
        routes += [Route(f"/{name}", self._asset) for name in ASSETS]
        self.app = Starlette(routes=[Route(each.path, self._guarded(each.endpoint), methods=["GET"]) for each in routes])
        self._server = uvicorn.Server(uvicorn.Config(self.app, log_level="warning", lifespan="off", timeout_graceful_shutdown=1))
        self._thread: Any = None

    def run(self) -> None:
        self._server.run([self._socket])

    def start(self, thread: Callable[..., Any]) -> None:
        self._thread = thread(target=self.run, name="windowpane-page", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(1)

    def close(self) -> None:
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(5)
        self._socket.close()
        self._reader.close()

    def _guarded(self, answer: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def guarded(request: Request) -> Response:
            given = request.query_params.get("token", "")
            if self._token is not None and not secrets.compare_digest(given.encode(), self._token.encode()):
                return PlainTextResponse("The page needs its token.", 403, _HEADERS)
            if self._hosts is not None and (request.url.hostname or "") not in self._hosts:  # another name may rebind to this one
                return PlainTextResponse("The page is shown under its own address.", 403, _HEADERS)
            try:
                response = await answer(request)
            except WindowpaneError as error:
                response = JSONResponse({"error": str(error)}, 400)
            response.headers.update(_HEADERS)
            return response

        return guarded

    async def _page(self, request: Request) -> Response:
        return Response(served_page().replace("<!--policy-->", ""), media_type="text/html")

    async def _asset(self, request: Request) -> Response:
        name = request.url.path.removeprefix("/")
        return Response(asset(name), media_type=ASSETS[name])

    async def _data(self, request: Request) -> Response:
        return Response(await self._reader.data(), media_type="application/json")

    async def _search(self, request: Request) -> Response:
        number = int(request.query_params.get("query", "0")) if request.query_params.get("query", "0").isdecimal() else 0
        return JSONResponse(await self._reader.search(number, request.query_params.get("key", "")))

    async def _events(self, request: Request) -> Response:
        async def versions() -> AsyncIterator[str]:
            before = 0
            while not await request.is_disconnected() and not self._server.should_exit:
                now = await self._reader.wait(before)
                if now != before:
                    yield f"data: {now}\n\n"
                before = now

        return StreamingResponse(versions(), media_type="text/event-stream")
