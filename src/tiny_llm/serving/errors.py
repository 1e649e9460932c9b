"""What a client is told when something is wrong: OpenAI's error object, with an HTTP status."""

from .async_engine import DeadError, DrainingError, FullError, RefusedError
from .generation import FailedError

KINDS = {
    400: "invalid_request_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "invalid_request_error",
    429: "rate_limit_error",
    503: "service_unavailable_error",
    504: "timeout_error",
}
"""The type that goes with a status; "server_error" for others from 500, "invalid_request_error" below."""

STATUS: dict[type[Exception], int] = {
    RefusedError: 400,
    FullError: 429,
    DrainingError: 503,
    DeadError: 503,
    FailedError: 500,
    TimeoutError: 504,
}


class ApiError(Exception):
    """A request is answered with an error. param: the field that is wrong. code: a word for programs."""

    def __init__(self, status: int, message: str, param: str | None = None, code: str | None = None):
        super().__init__(message)
        self.status, self.message, self.param, self.code = status, message, param, code

    def body(self) -> dict[str, dict[str, str | None]]:
        """OpenAI's error object."""
        kind = KINDS.get(self.status, "server_error" if self.status >= 500 else "invalid_request_error")
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}


def api_error(error: Exception) -> ApiError:
    """What a client is told of `error`. Of one that is no answer to the client's own doing, only that there was one."""
    if isinstance(error, ApiError):
        return error
    for kind, status in STATUS.items():
        if isinstance(error, kind):
            return ApiError(status, str(error))
    return ApiError(500, "the server failed to answer this request")
