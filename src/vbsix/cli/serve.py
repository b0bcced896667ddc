"""`vbsix serve`: the playground in the browser."""

from __future__ import annotations

import errno
import functools
import ipaddress
import logging
import os
import socket
from pathlib import Path
from typing import Annotated

import typer

from vbsix.cli.domains import OwnDomain, own_domain
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.jax_settings import prepare_jax

NO_EXTRA = "the playground needs its extra: pip install 'vbsix[playground]', in a checkout: pip install '.[playground]'"


def serve(
    models: Annotated[
        list[Path] | None,
        typer.Argument(metavar="MODEL...", help="Folders of runs, or exported models. Default: the built-in ones."),
    ] = None,
    domain: OwnDomain = None,
    host: Annotated[str, typer.Option(help="Where to listen. Others can reach it unless this is loopback.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any that is free.")] = 8000,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A name under which browsers reach the page; needed with --host 0.0.0.0."),
    ] = None,
    feedback: Annotated[
        Path | None,
        typer.Option(file_okay=False, metavar="FOLDER", help="Save corrections as FOLDER/DOMAIN.jsonl."),
    ] = None,
) -> None:
    """Open a playground in the browser: try parsers, see how programs are found, compare models.

    Each seed of a run is a model of its own. Nothing leaves this machine, and only this machine can reach the page
    unless --host says otherwise.

    Example: vbsix serve runs/tangrams runs/scene model.safetensors
    """
    try:
        import fastapi  # noqa: F401
        import uvicorn
    except ModuleNotFoundError as error:
        raise VbsixError(NO_EXTRA) from error
    hosts = _hosts(host, allow_host or [])
    with listen(host, port) as listener:  # first, for the rest takes seconds
        if not _is_loopback(host):
            typer.echo(
                f"warning: everybody who can reach {host} on this machine can use the playground; "
                "it knows no passwords and no encryption.",
                err=True,
            )
        typer.echo(f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}")
        prepare_jax()
        from vbsix.parsing.loading import find_model, pretrained_models
        from vbsix.playground import models as loading
        from vbsix.playground.app import create_app
        from vbsix.playground.preparing import Preparation

        paths = [find_model(path) for path in models] if models else list(pretrained_models().values())
        own = own_domain(domain)
        prepared = Preparation()
        app = create_app(prepared, hosts=hosts, feedback=feedback)
        server = uvicorn.Server(
            uvicorn.Config(app, log_config=None, timeout_keep_alive=30, timeout_graceful_shutdown=3)
        )
        # No log while the server stops: answers that are cut off then are not errors.
        logging.getLogger("uvicorn.error").addFilter(lambda _: not server.should_exit)
        try:
            tell = functools.partial(typer.echo, err=True)
            prepared.start(lambda: loading.load_models(paths, own), tell, lambda: setattr(server, "should_exit", True))
            server.run(sockets=[listener])
            if prepared.failure is not None:
                raise prepared.failure
            os._exit(0)  # compilations cannot be interrupted, and Python would wait for them or break them
        except KeyboardInterrupt:
            os._exit(130)


def _hosts(host: str, named: list[str]) -> list[str]:
    """The names that the server answers to."""
    from vbsix.playground.limits import LOOPBACK

    own = [name.lower() for name in named]
    if _is_loopback(host):
        return [*LOOPBACK, host, *own]
    if (everywhere := _is_everywhere(host)) and not own:
        raise VbsixError(
            f"--host {host}: name the host that browsers ask for, such as --allow-host {socket.gethostname()}; "
            "requests for other names are refused."
        )
    bare = f"[{host}]" if ":" in host else host
    return [*LOOPBACK, *([] if everywhere else [bare.lower()]), *own]


def listen(host: str, port: int) -> socket.socket:
    """A socket whose connections send small answers at once; asyncio sees to that only for sockets of its own."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=512)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as error:
        reason = str(error.strerror).partition(" (")[0]
        hint = " Take another port: --port 0 takes any that is free." if error.errno == errno.EADDRINUSE else ""
        raise VbsixError(f"cannot listen at {host}, port {port}: {reason}.{hint}") from error


def _is_everywhere(host: str) -> bool:
    """Whether it stands for all addresses of this machine: 0.0.0.0 and ::, however they are written."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return host in ("", "0")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
