"""params.yaml is checked against its schema, and each fault is named by its key."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from convs2s.config.download import UrlSource
from convs2s.config.kinds import PATTERNS
from convs2s.config.load import load_params
from convs2s.config.params import Params
from pipelines.meanings import meanings, sections
from pipelines.stages.download import digest
from tests.presets import content_of, params_of

ROOT = Path(__file__).parent.parent
MISSING = object()


def changed(folder: Path, name: str, value: Any) -> Path:
    """Write the default preset with one key changed, added or removed; return the file's path."""
    content = content_of("tatoeba-en-de")
    *sections, key = name.split(".")
    target = content
    for section in sections:
        target = target[int(section) if section.isdigit() else section]
    if value is MISSING:
        del target[key]
    else:
        target[key] = value
    path = folder / "params.yaml"
    with path.open("w", encoding="utf-8") as stream:
        YAML(typ="safe").dump(content, stream)
    return path


@pytest.mark.fault("numbers")
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("train.droput", 0.1, r"train\.droput: unknown key, found 0\.1; did you mean dropout\?"),
        ("trian", {}, r"trian: unknown key, found \{\}; did you mean train\?"),
        ("download.train.0.column", 0, r"download\.train\.0\.column: unknown key.*did you mean columns\?"),
        ("train.dropout", MISSING, r"train\.dropout: missing"),
        ("translate", MISSING, r"translate: missing"),
        ("translate.beam_size", "five", r"translate\.beam_size: found 'five', wanted an integer"),
        ("translate.beam_size", 0, r"translate\.beam_size: found 0, wanted greater than or equal to 1"),
        ("train.dropout", 1.0, r"train\.dropout: found 1\.0, wanted less than 1"),
        ("replace.enabled", "yes please", r"replace\.enabled: found 'yes please', wanted a boolean"),
        (
            "vocabulary.kind",
            "wordpiece",
            r"vocabulary\.kind: found 'wordpiece', wanted 'bpe', 'sentencepiece' or 'word'",
        ),
        ("download.train.0.kind", "magic", r"download\.train\.0: .*magic"),
        (
            "download.source_language",
            "English",
            r"download\.source_language: found 'English', wanted a code of two or three lowercase letters, "
            r"such as en",
        ),
        ("model.attention", [True] * 9, r"model: attention has length 9 but decoder_widths \d;"),
        ("model.encoder_kernels", [3], r"model: encoder_widths has length \d but encoder_kernels 1;"),
        ("model.decoder_kernels", [3], r"model: decoder_widths has length \d but decoder_kernels 1;"),
        ("model.encoder_kernels", [3, 4, 3], r"model: encoder_kernels has the even width 4"),
        ("train.seeds", [1, 1], r"train: seeds \[1, 1\] has duplicates; wanted distinct seeds"),
        ("evaluate.ensembles", MISSING, r"evaluate\.ensembles: missing"),
        (
            "evaluate.ensembles",
            ["all"],
            r"evaluate\.ensembles is \['all'\] but train\.seeds is \[1\]: an ensemble needs two models",
        ),
        ("evaluate.ensembles", ["none"], r"evaluate\.ensembles\.0: found 'none', wanted 'all'"),
        ("train.nodes", 2, r"train: nodes is 2 but rendezvous is None"),
        (
            "vocabulary.target_size",
            17,
            r"vocabulary: joint: true learns one model.*target_size \(17\) must be equal",
        ),
        (
            "translate.alpha",
            "tunned",
            r"translate\.alpha: found 'tunned', wanted a number from 0 to 10, or tuned",
        ),
        ("translate.alpha", -0.1, r"translate\.alpha: found -0\.1, wanted a number from 0 to 10, or tuned"),
        ("translate.alpha", True, r"translate\.alpha: found True, wanted a number from 0 to 10, or tuned"),
        (
            "translate.alpha",
            1e308,
            r"translate\.alpha: found 1e\+308, wanted a number from 0 to 10, or tuned",
        ),
        ("tune.alphas", [1e308], r"tune\.alphas\.0: found 1e\+308, wanted less than or equal to 10"),
        ("train.learning_rate", math.inf, r"train\.learning_rate: found inf, wanted a finite number"),
        ("model.embedding_size", 10**30, r"model\.embedding_size: found 10+, wanted less than or equal to"),
        ("tune.alphas", [], r"tune\.alphas: found \[\], wanted at least 1 item"),
        ("tune.alphas", [1.0, 1], r"tune: alphas \[1\.0, 1\.0\] has duplicates; wanted distinct values"),
        ("translate.n_best", 9, r"translate: n_best 9 exceeds beam_size"),
        ("download.valid", [], r"filter\.valid_every and download\.valid: exactly one"),
        ("download.train_pairs", 0, r"download\.train_pairs: found 0, wanted greater than or equal to 1"),
        (
            "translate.selection",
            {"common": 500, "candidates": 100},
            r"translate\.selection takes 100 candidates .*align\.candidates is None; wanted at least",
        ),
        (
            "train.selection",
            {"common": 500, "candidates": 100},
            r"train\.selection is set but translate\.selection is null: .* wanted a selection there as well",
        ),
        (
            "train.selection",
            {"comon": 500, "common": 1, "candidates": 1},
            r"train\.selection\.comon: unknown key, found 500; did you mean common\?",
        ),
        ("align", {"backend": "none", "iterations": 5, "candidates": 9}, r"align: candidates need an align"),
        ("download.train", [], r"download\.train: found \[\]"),
        ("download.references", ["ref1"], r"download\.references names 1 file\(s\), which only ROUGE uses"),
        ("evaluate.rouge", "duc", r"evaluate\.rouge: found 'duc', wanted 'gigaword' or 'duc2004'"),
    ],
)
def test_a_fault_names_the_key_what_was_found_and_what_was_wanted(
    tmp_path: Path, name: str, value: Any, message: str
) -> None:
    """The message alone must be enough to fix params.yaml, before any stage starts."""
    with pytest.raises(ValueError, match=r"fault\(s\):\n  " + message):
        load_params(changed(tmp_path, name, value))


def test_every_pattern_is_put_into_words() -> None:
    """A regular expression is no answer to a reader who does not program."""
    patterns = re.findall(r'"pattern": "([^"]+)"', json.dumps(Params.model_json_schema()))
    assert {*patterns} == {*PATTERNS}


def test_layers_have_a_short_form(tmp_path: Path) -> None:
    """A single value applies to every layer, so users can change the depth without editing other keys."""
    path = changed(tmp_path, "model.encoder_widths", "2 x 64,1 x 128")
    text = path.read_text(encoding="utf-8")
    for name, value in (("encoder_kernels", "3"), ("decoder_widths", "4 x 64"), ("attention", "true")):
        text = re.sub(rf"(?m)^  {name}:.*(\n  - .*)*", f"  {name}: {value}", text)
    path.write_text(re.sub(r"(?m)^  decoder_kernels:.*(\n  - .*)*", "  decoder_kernels: 3 x 5, 1x1", text))
    model = load_params(path).model
    assert model.encoder_widths == [64, 64, 128] and model.encoder_kernels == [3, 3, 3]
    assert model.decoder_widths == [64] * 4 and model.decoder_kernels == [5, 5, 5, 1]
    assert model.attention == [True] * 4


@pytest.mark.parametrize("text", ["4", "4 x", "4 x 256,", "0 x 256", "999 x 1, 999 x 1", "4 x 2.5", ""])
def test_a_wrong_short_form_is_named(tmp_path: Path, text: str) -> None:
    """The message shows both valid forms."""
    message = f"model.encoder_widths: found {text!r}, wanted a list with a value per block"
    with pytest.raises(ValueError, match=re.escape(message)):
        load_params(changed(tmp_path, "model.encoder_widths", text))


def test_all_attention_off_is_impossible(tmp_path: Path) -> None:
    """The decoder would never see the source."""
    layers = len(params_of("tatoeba-en-de").model.attention)
    with pytest.raises(ValueError, match="attention is off in every layer"):
        load_params(changed(tmp_path, "model.attention", [False] * layers))


def test_joint_words_are_impossible(tmp_path: Path) -> None:
    """Word vocabularies are always separate for source and target."""
    with pytest.raises(ValueError, match="joint: true needs kind: bpe or sentencepiece"):
        load_params(changed(tmp_path, "vocabulary.kind", "word"))


@pytest.mark.parametrize("columns", [None, [0, 1]])
def test_a_source_is_two_files_or_one_tsv(tmp_path: Path, columns: list[int] | None) -> None:
    """Half of each form does not give any pairs."""
    source = {"kind": "files", "source": "a", "target": None, "tsv": None, "columns": columns}
    with pytest.raises(ValueError, match=r"download\.train\.0: give either `source` and `target`, or `tsv`"):
        load_params(changed(tmp_path, "download.train", [source]))


def test_every_fault_is_listed_at_once(tmp_path: Path) -> None:
    """A user should not have to fix a file five times."""
    path = changed(tmp_path, "train.dropout", "much")
    path.write_text(path.read_text().replace("clip_norm", "clipnorm"))
    with pytest.raises(ValueError, match=r"3 fault\(s\)") as error:
        load_params(path)
    assert "train.clipnorm: unknown key" in str(error.value)
    assert "did you mean clip_norm?" in str(error.value)


def test_numbers_are_read_as_dvc_reads_them(tmp_path: Path) -> None:
    """1e-4 is a number to YAML 1.2, a string to PyYAML."""
    path = changed(tmp_path, "train.momentum", 0.5)
    path.write_text(path.read_text().replace("momentum: 0.5", "momentum: 1e-4"))
    assert load_params(path).train.momentum == 1e-4


@pytest.mark.fault("input")
def test_a_missing_file_and_invalid_yaml_are_errors(tmp_path: Path) -> None:
    """The message must say what to do next."""
    with pytest.raises(FileNotFoundError, match=r"make preset NAME=tatoeba-en-de"):
        load_params(tmp_path / "params.yaml")
    (tmp_path / "params.yaml").write_text("a: [1, 2\nb: }")
    with pytest.raises(ValueError, match=r"params\.yaml is not valid YAML"):
        load_params(tmp_path / "params.yaml")


BOMB = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10))


@pytest.mark.fault("input")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"download: K\xf6ln\n", r"byte 11 is 0xf6, which is not UTF-8\. Save it as UTF-8"),
        ("a: 1\n".encode("utf-16"), r"byte 0 is 0xff, which is not UTF-8\..* iconv -f utf-16 -t utf-8\."),
        (BOMB.encode(), r"has more than 20,000 values.* once its aliases .* are written out\. Wanted fewer"),
        (b"a: &a [*a]\n", r"more than 20 levels"),
        (b"[" * 500, r"not a parameter file: its lists are nested too deeply"),
        (b"a: 2001-13-13\n", r"is not valid YAML: month must be in 1\.\.12"),
        (b"a: " + b"9" * 5000, r"is not valid YAML: Exceeds the limit"),
        (b"x" * (1 << 20) + b"x", r"has 1,048,577 bytes, wanted at most 1,048,576"),
        (b"", r"params\.yaml: found None, wanted"),
    ],
)
def test_a_hostile_or_damaged_file_is_reported(tmp_path: Path, content: bytes, message: str) -> None:
    """Reading must stop early and in little memory: expanded, the bomb has half a billion values."""
    (tmp_path / "params.yaml").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load_params(tmp_path / "params.yaml")


def test_aliases_may_be_used(tmp_path: Path) -> None:
    """Aliases are ordinary YAML; only excessive ones are refused."""
    path = changed(tmp_path, "train.seeds", [1])
    text = path.read_text().replace("anneal_factor: 0.1", "anneal_factor: &one 0.1")
    path.write_text(text.replace("clip_norm: 0.1", "clip_norm: *one"))
    assert load_params(path) == params_of("tatoeba-en-de")


def test_parameters_cannot_be_changed_after_reading() -> None:
    """The values in use must be those that were checked."""
    params = params_of("tatoeba-en-de")
    with pytest.raises(ValueError, match="frozen"):
        params.train.dropout = 0.5


def test_every_field_of_the_schema_is_documented() -> None:
    """Reference pages and forms are generated from the schema."""
    for section in type(params_of("tatoeba-en-de")).model_fields.values():
        name = getattr(section.annotation, "__name__", "")
        assert set(meanings(sections()[name])) == set(sections()[name].model_fields)


def url_source(**checksum: Any) -> dict[str, Any]:
    """Return a source of kind `url` with one file."""
    fetch = [{"urls": ["https://host/a.tgz"], **checksum}]
    return {"kind": "url", "fetch": fetch, "source": "a", "target": "b", "tsv": None, "columns": None}


@pytest.mark.fault("security")
@pytest.mark.parametrize(
    ("urls", "message"),
    [
        (
            ["https://me:secret@host/a"],
            r"fetch\.0\.urls\.0: the URL has a user name or password, which git and",
        ),
        (
            "https://me:secret@host/a?b=secret",
            r"fetch\.0\.urls: found 'https://\.\.\.@host/a\?\.\.\.', wanted a list",
        ),
    ],
)
def test_a_password_in_a_url_is_refused_and_not_shown(tmp_path: Path, urls: Any, message: str) -> None:
    """params.yaml is committed to git, and error messages are shared."""
    source = url_source(sha256=None)
    source["fetch"][0]["urls"] = urls
    with pytest.raises(ValueError, match=message) as error:
        load_params(changed(tmp_path, "download.train", [source]))
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("checksum", [{"sha256": "0" * 64}, {"md5": "0" * 32}, {"sha256": None}])
def test_a_file_is_checked_by_what_its_publisher_gives(tmp_path: Path, checksum: dict[str, Any]) -> None:
    """Publishers give SHA-256, MD5 (for WMT's test sets) or nothing, which must be explicit."""
    source = load_params(changed(tmp_path, "download.train", [url_source(**checksum)])).download.train[0]
    assert isinstance(source, UrlSource)
    assert digest(source.fetch[0]) == next(iter(checksum.values()))


@pytest.mark.parametrize(
    ("checksum", "message"),
    [
        ({}, r"download\.train\.0\.fetch\.0\.sha256: missing"),
        (
            {"md5": "0" * 31},
            r"download\.train\.0\.fetch\.0\.md5: found '0+', wanted 32 digits 0 to 9 and a to f",
        ),
        ({"md5": None}, r"download\.train\.0\.fetch\.0\.md5: found None, wanted a string"),
        ({"md5": "0" * 32, "sha": None}, r"fetch\.0\.sha: unknown key, found None; known here: md5, urls"),
        ({"sha25": None}, r"fetch\.0\.sha25: unknown key, found None; did you mean sha256\?"),
    ],
)
def test_a_wrong_checksum_is_named_by_its_key(tmp_path: Path, checksum: dict[str, Any], message: str) -> None:
    """Users know the keys; the names of our classes would mean nothing to them."""
    with pytest.raises(ValueError, match=message):
        load_params(changed(tmp_path, "download.train", [url_source(**checksum)]))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "remove_diacritics",
            r"remove_diacritics is for a Romanian source; found download\.source_language 'en'",
        ),
        ("normalize_romanian", r"normalize_romanian is true, but neither .*'en'.* nor .*'de'.* is 'ro'"),
    ],
)
def test_romanian_options_need_romanian(tmp_path: Path, name: str, message: str) -> None:
    """A target without diacritics would score about ten BLEU too high (T32)."""
    with pytest.raises(ValueError, match=message):
        load_params(changed(tmp_path, f"tokenize.{name}", True))


def test_lowercase_excludes_truecase(tmp_path: Path) -> None:
    """Lowercased words have no case left for a truecaser to learn."""
    path = changed(tmp_path, "tokenize.lowercase", True)
    path.write_text(path.read_text().replace("truecase: false", "truecase: true"))
    with pytest.raises(ValueError, match="tokenize: lowercase and truecase are both true"):
        load_params(path)


def test_lowercase_excludes_capital_at_signs(tmp_path: Path) -> None:
    """##AT## would become ##at##, which nothing undoes."""
    path = changed(tmp_path, "tokenize.lowercase", True)
    path.write_text(path.read_text().replace("at_sign: '@'", "at_sign: '##AT##'"))
    with pytest.raises(ValueError, match="tokenize: lowercase is true and at_sign is ##AT##"):
        load_params(path)
