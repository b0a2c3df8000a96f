"""OpenSearch's client for Java, from Maven Central, in the version of programs/pom.xml."""

import shutil
import subprocess
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"
_POM = PROGRAMS / "pom.xml"
_FOLDER = Path(__file__).parents[3] / ".peers" / "opensearch-java"


def in_java(*arguments: str) -> list[str]:
    """A command that runs programs/Ask.java. The client is installed the first time, and when its version changes."""
    installed = _FOLDER / "pom.xml"
    if not installed.exists() or installed.read_bytes() != _POM.read_bytes():
        shutil.rmtree(_FOLDER, ignore_errors=True)
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={_FOLDER}"]
        subprocess.run(["mvn", "--quiet", "--batch-mode", "--file", _POM, *goal], check=True)
        shutil.copy(_POM, installed)
    return ["java", "-cp", f"{_FOLDER}/*", str(PROGRAMS / "Ask.java"), *arguments]
