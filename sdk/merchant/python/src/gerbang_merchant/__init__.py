"""The client of a merchant of Gerbang: a method for each call of the API, retries that are
safe, typed errors, and the verification of callbacks. It needs the standard library alone."""

from . import generated
from .callback import Callback, CallbackError, verify_callback
from .client import Client, GerbangError, NoAnswer
from .generated import *

__all__ = ["Callback", "CallbackError", "Client", "GerbangError", "NoAnswer", "verify_callback"]
__all__ += generated.__all__
