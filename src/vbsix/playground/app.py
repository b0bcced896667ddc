"""The server: one page, and a JSON API that it speaks to."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from vbsix import __version__
from vbsix.data.synthetic.corpus import has_corpus
from vbsix.domains.names import base_name
from vbsix.parsing.attention import attends
from vbsix.playground.answers import answer_attention, answer_parse, answer_search, random_rows
from vbsix.playground.examples import EXAMPLES, GUIDED
from vbsix.playground.feedback import Feedback
from vbsix.playground.limits import LOOPBACK, AddHeaders, Busy, Gate, Gone, KnownHosts, LimitBody, TooSlow
from vbsix.playground.messages import (
    AttentionAnswer,
    AttentionRequest,
    FeedbackRequest,
    GuidedSearch,
    KnownExample,
    ModelInfo,
    ModelName,
    Models,
    ParseAnswer,
    ParseRequest,
    Problem,
    RandomWorld,
    Saved,
    SearchAnswer,
    SearchRequest,
)
from vbsix.playground.models import Model
from vbsix.playground.preparing import Preparation
from vbsix.utilities.errors import UnknownName, VbsixError

STATIC = Path(__file__).parent / "static"
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}
RETRY = {"Retry-After": "2"}
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": words}
    for status, words in {
        400: "Not a request that can be read.",
        404: "There is no such model.",
        408: "The request took too long to arrive.",
        413: "The request is too large.",
        422: "The request cannot be carried out; `detail` says why.",
        429: "The server has enough to do; try again soon.",
        503: "The model is still being prepared, and `Retry-After` says when to try again; or this took too long.",
    }.items()
}


def create_app(
    models: Mapping[str, Model] | Preparation,
    *,
    hosts: Sequence[str] = LOOPBACK,
    feedback: Path | None = None,
) -> FastAPI:
    """The playground of some models.

    Args:
        models: by name, or while they are prepared. Nothing else can be asked for, and no name is ever a path.
        hosts: names that the server answers to, so that no other site's page can speak to it.
        feedback: the folder in which corrections are saved; None saves none.
    """
    prepared = models if isinstance(models, Preparation) else Preparation(models)
    box = None if feedback is None else Feedback(feedback)
    app = FastAPI(
        title="vbsix playground",
        version=__version__,
        description="Instructions in, programs and worlds out. Answers of 4xx say in `detail` what is wrong.",
        docs_url=None,  # FastAPI's own page loads its scripts from elsewhere
        redoc_url=None,
    )
    parses = Gate(running=2, waiting=200, seconds=30)
    explanations = Gate(running=1, waiting=200, seconds=30)
    searches = Gate(running=1, waiting=4, seconds=60)
    app.add_middleware(LimitBody)
    app.add_middleware(KnownHosts, hosts=hosts)
    app.add_middleware(AddHeaders, headers=HEADERS)
    _handle_errors(app)

    def model_of(name: str) -> Model:
        if prepared.is_loading:
            raise HTTPException(503, "the models are being loaded; try again soon.", RETRY)
        if name not in prepared.models:
            raise HTTPException(404, str(UnknownName("model", name, prepared.models)))
        return prepared.models[name]

    def ready(name: str) -> Model:
        """A model that answers at once: a request that compiled it would slow down all others."""
        model = model_of(name)
        if name not in prepared.ready:
            raise HTTPException(503, f"{name} is being prepared; try again soon.", RETRY)
        return model

    @app.get("/api/models", tags=["api"], responses={status: _PROBLEMS[status] for status in (400, 408, 413)})
    async def list_models() -> Models:
        """The models that can be asked."""
        known = [_describe(model, name in prepared.ready) for name, model in list(prepared.models.items())]
        return Models(models=known, preparing=prepared.words, feedback=box is not None)

    @app.get("/api/random", tags=["api"], responses=_PROBLEMS)
    async def give_random_world(model: Annotated[ModelName, Query()]) -> RandomWorld:
        """A random world of a model's domain, out of the built-in corpus."""
        domain = model_of(model).domain
        if not has_corpus(domain):
            raise HTTPException(404, f"there are no random worlds of {domain}.")
        return RandomWorld(world=str(random.choice(random_rows(domain)).row.worlds[0]))

    @app.post("/api/parse", tags=["api"], responses=_PROBLEMS)
    async def parse(request: ParseRequest, http: Request) -> ParseAnswer:
        """What a model makes of instructions: the most probable programs, and the world after each command."""
        gate = explanations if request.explain and request.utterances else parses
        model = ready(request.model) if request.utterances else model_of(request.model)
        return await gate.run(answer_parse, model, request, receive=http.receive)

    @app.post("/api/search", tags=["api"], responses=_PROBLEMS)
    async def search_programs(request: SearchRequest, http: Request) -> SearchAnswer:
        """How programs for a target world are found, in execution space and in program space."""
        return await searches.run(answer_search, ready(request.model), request, receive=http.receive)

    @app.post("/api/attention", tags=["api"], responses=_PROBLEMS)
    async def show_attention(request: AttentionRequest, http: Request) -> AttentionAnswer:
        """Which words of each instruction the model attended to when it chose each token of its command."""
        return await searches.run(answer_attention, ready(request.model), request, receive=http.receive)

    @app.post("/api/feedback", tags=["api"], responses=_PROBLEMS)
    async def save_feedback(request: FeedbackRequest, http: Request) -> Saved:
        """Saves instructions with the world that they should lead to, as an example to learn from."""
        model = model_of(request.model)
        if box is None:
            raise HTTPException(404, "corrections are not saved: start the server with --feedback FOLDER.")
        return Saved(saved=await searches.run(box.save, model, request, receive=http.receive))

    @app.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(STATIC / "index.html")

    @app.api_route("/docs", methods=["GET", "HEAD"], include_in_schema=False)
    async def documentation() -> FileResponse:
        return FileResponse(STATIC / "docs.html")

    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    return app


def _describe(model: Model, ready: bool) -> ModelInfo:
    provenance = {
        name: value for name, value in model.parser.provenance.items() if isinstance(value, str | int | float)
    }
    return ModelInfo(
        name=model.name,
        domain=model.domain,
        critic=model.parser.critic is not None,
        attention=attends(model.parser),
        examples=[
            KnownExample(title=one.title, world=one.world, utterances=list(one.utterances), target=one.target)
            for one in EXAMPLES.get(base_name(model.domain), ())
        ],
        guided=[
            GuidedSearch(
                title=one.title,
                world=one.world,
                utterances=list(one.utterances),
                target=one.worlds[-1],
                beam=one.beam,
                look=one.look,
            )
            for one in GUIDED.get(model.name, ())
        ],
        random=has_corpus(model.domain),
        ready=ready,
        accuracy={length: float(share) for length, share in model.accuracy.items()},
        accuracy_split=model.accuracy_split,
        provenance=provenance,
    )


def _handle_errors(app: FastAPI) -> None:
    """Every error is a status and one `detail` for a person, which never repeats what was sent at length."""

    def answer(status: int, detail: str) -> JSONResponse:
        return JSONResponse({"detail": detail}, status)

    @app.exception_handler(RequestValidationError)
    async def _(_: Request, error: RequestValidationError) -> JSONResponse:
        wrong = error.errors()[0]
        where = ".".join(str(part)[:40] for part in wrong["loc"][1:])
        if wrong["type"] == "json_invalid":
            return answer(400, f"not JSON: {wrong.get('ctx', {}).get('error', 'it does not parse')}")
        return answer(422, f"{where}: {wrong['msg']}" if where else str(wrong["msg"]))

    @app.exception_handler(HTTPException)
    async def _(_: Request, error: HTTPException) -> JSONResponse:
        unread = error.status_code == 400 and error.detail.startswith("There was an error parsing")
        detail = "not JSON that can be read." if unread else error.detail
        return JSONResponse({"detail": detail}, error.status_code, error.headers)

    @app.exception_handler(VbsixError)
    async def _(_: Request, error: VbsixError) -> JSONResponse:
        return answer(422, str(error))

    @app.exception_handler(Busy)
    async def _(_: Request, __: Busy) -> JSONResponse:
        return JSONResponse({"detail": "too many requests at once; try again soon."}, 429, {"Retry-After": "1"})

    @app.exception_handler(TooSlow)
    async def _(_: Request, __: TooSlow) -> JSONResponse:
        return answer(503, "this took too long; ask for less.")

    @app.exception_handler(Gone)
    async def _(_: Request, __: Gone) -> JSONResponse:
        return answer(499, "the client has left.")
