"""Runs checks of a client on models, each named as an argument, and prints a line of JSON for each.

A line is `[model, check, what it returned]`, or the error as a string. What a check returns is said at its name.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

from pydantic import BaseModel

QUESTION = "What is the meaning of life?"
WEATHER_QUESTION = "How warm is it in Oslo?"
COUNTRY_QUESTION = "Which country has Oslo as its capital?"
WEATHER_SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "Name of the city"}},
    "required": ["city"],
    "additionalProperties": False,
}


class Country(BaseModel):
    name: str
    capital: str


def get_weather(city: str) -> str:
    """Say how warm it is in a city."""
    return "12 degrees" if city == "Oslo" else f"nobody knows {city}"


def run(**checks):
    models = sys.argv[1:]
    with ThreadPoolExecutor(1) as pool:  # its jobs have their errors
        jobs = {(model, name): pool.submit(check, model) for model in models for name, check in checks.items()}
        for (model, name), job in jobs.items():
            error = job.exception()
            got = job.result() if error is None else f"{type(error).__name__}: {error}"
            print(json.dumps([model, name, got]), flush=True)
