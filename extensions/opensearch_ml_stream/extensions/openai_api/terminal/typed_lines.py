"""What is typed at a prompt, with a history that is nowhere but in memory."""

import readline

from opensearch_ml_stream.plugin.cli.printing import print_text

_MORE = "… "


class TypedLines:
    """Reads texts of one or more lines; the arrow keys bring earlier ones back."""

    def __init__(self) -> None:
        readline.set_auto_history(False)
        readline.parse_and_bind("set enable-bracketed-paste on")  # what is pasted is one text, whatever lines it has

    def read(self, prompt: str) -> str | None:
        """Return a text, "" for one that was given up (Ctrl-C), None at the end (Ctrl-D, or Ctrl-C where it is empty).

        A line that ends with a backslash goes on in the next.
        """
        lines: list[str] = []
        try:
            while True:
                line = input(_MORE if lines else prompt)
                lines.append(line.removesuffix("\\"))
                if not line.endswith("\\"):
                    break
        except EOFError:
            print_text()
            return None
        except KeyboardInterrupt:
            print_text()
            return "" if lines or readline.get_line_buffer() else None
        text = "\n".join(lines).encode("utf-8", "replace").decode()  # without the halves of characters
        if text.strip():
            readline.add_history(text)
        return text
