"""Logins whose password was found right: by whom they are known, and what is on the disk of them."""

from contextlib import closing
from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.security import own_gate
from opensearch_ml_stream.plugin.security.own_gate import VerifiedLogins

KEY = b"k" * 32


def test_a_login_is_known_to_all_workers_of_the_server_and_to_no_other(tmp_path: Path) -> None:
    with closing(VerifiedLogins(tmp_path, KEY)) as one, closing(VerifiedLogins(tmp_path, KEY)) as other:
        login = one.digest("ann", "correct horse", "hash")
        assert login not in one and login not in other
        one.add(login)
        assert login in one and login in other
        for different in (
            ("ann", "correct horse", "new hash"),
            ("ann", "horse", "hash"),
            ("bob", "correct horse", "hash"),
        ):
            assert other.digest(*different) not in other
    with closing(VerifiedLogins(tmp_path, b"o" * 32)) as stranger:
        assert stranger.digest("ann", "correct horse", "hash") not in stranger


def test_nobody_can_try_passwords_on_the_file(tmp_path: Path) -> None:
    with closing(VerifiedLogins(tmp_path, KEY)) as logins:
        logins.add(logins.digest("ann", "correct horse", "hash"))
        stored = b"".join(file.read_bytes() for file in tmp_path.iterdir())
        assert logins.digest("ann", "correct horse", "hash") in stored
        assert VerifiedLogins(tmp_path).digest("ann", "correct horse", "hash") not in stored
        assert KEY not in stored and b"horse" not in stored


def test_a_file_that_takes_no_more_costs_the_other_workers_a_check_alone(tmp_path: Path) -> None:
    with closing(VerifiedLogins(tmp_path / "missing", KEY)) as logins:
        login = logins.digest("ann", "correct horse", "hash")
        logins.add(login)
        assert login in logins


def test_logins_in_memory_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_gate, "_MAX_LOGINS", 2)
    with closing(VerifiedLogins(tmp_path)) as logins:
        digests = [logins.digest(name, "p", "s") for name in ("a", "b", "c")]
        logins.add(digests[0])
        logins.add(digests[1])
        assert digests[0] in logins
        logins.add(digests[2])
        assert [digest in logins for digest in digests] == [True, False, True]
