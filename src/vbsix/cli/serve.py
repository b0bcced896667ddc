"""`vbsix serve`: the playground in the browser."""

from __future__ import annotations

import functools
import ipaddress
import os
import socket
import threading
import time
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
) -> None:
    """Open a playground in the browser: try parsers, see how programs are found, compare models.

    Each seed of a run is a model of its own. Nothing leaves this machine, and only this machine can reach the page
    unless --host says otherwise.

    Example: vbsix serve runs/tangrams runs/scene model.safetensors
    """
    try:
        import uvicorn

        from vbsix.playground.answers import warm_up, warm_up_rest
        from vbsix.playground.app import LOOPBACK, create_app
    except ModuleNotFoundError as error:
        raise VbsixError(NO_EXTRA) from error
    prepare_jax()
    from vbsix.parsing.loading import pretrained_models
    from vbsix.playground.models import load_models

    loaded = load_models(models or list(pretrained_models().values()), own_domain(domain))
    local = _is_loopback(host)
    with listen(host, port) as listener:  # before the long part, and who comes early waits
        if not local:
            typer.echo(
                f"warning: everybody who can reach {host} on this machine can use the playground; "
                "it knows no passwords and no encryption.",
                err=True,
            )
        address = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
        began, tell = time.monotonic(), functools.partial(typer.echo, err=True)
        app = create_app(loaded, hosts=[*LOOPBACK, host] if local else ["*"])
        try:
            warm_up(loaded, tell)
            typer.echo(f"ready after {time.monotonic() - began:.0f} s: {address}")
            threading.Thread(target=warm_up_rest, args=(loaded, tell), daemon=True).start()
            uvicorn.Server(uvicorn.Config(app, log_config=None, timeout_keep_alive=30)).run(sockets=[listener])
        except KeyboardInterrupt:
            os._exit(130)  # compilations cannot be interrupted, and Python would wait for them or break them


def listen(host: str, port: int) -> socket.socket:
    """A socket whose connections send small answers at once; asyncio sees to that only for sockets of its own."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=512)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as error:
        raise VbsixError(f"cannot listen at {host}, port {port}: {str(error.strerror).partition(' (')[0]}.") from error


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
