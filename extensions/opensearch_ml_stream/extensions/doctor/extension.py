"""The declaration of doctor."""

from opensearch_ml_stream.plugin.extension import Command, Extension

_COMMANDS = "opensearch_ml_stream.extensions.doctor.cli."

EXTENSION = Extension(
    name="doctor",
    summary="Doctor: says step by step what is wrong between a model and its provider; records and replays.",
    open="opensearch_ml_stream.extensions.doctor.opening:open_doctor",
    commands=(
        Command(
            "doctor",
            f"{_COMMANDS}doctor_command:doctor",
            "Find out where a stream is held up. Each path is measured by a call, which the provider charges for.",
            takes_model_id=True,
        ),
        Command(
            "record",
            f"{_COMMANDS}recording_commands:record",
            "Keep a provider's stream in a file, without credentials and prompt.",
            takes_model_id=True,
        ),
        Command(
            "replay",
            f"{_COMMANDS}recording_commands:replay",
            "Be a provider that plays a recording for every POST, until Ctrl-C.",
        ),
    ),
)
