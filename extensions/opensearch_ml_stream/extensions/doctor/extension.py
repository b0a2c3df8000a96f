"""The declaration of doctor."""

from opensearch_ml_stream.plugin.extension import Command, Extension

_COMMANDS = "opensearch_ml_stream.extensions.doctor.cli."

EXTENSION = Extension(
    name="doctor",
    summary="Doctor: says step by step what is wrong between a model and its provider; records and replays.",
    open="opensearch_ml_stream.extensions.doctor.opening:open_doctor",
    commands=(
        Command("doctor", f"{_COMMANDS}doctor_command:doctor", takes_model_id=True),
        Command("record", f"{_COMMANDS}recording_commands:record", takes_model_id=True),
        Command("replay", f"{_COMMANDS}recording_commands:replay"),
    ),
)
