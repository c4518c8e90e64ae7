#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the result tables of the documentation from the records in benchmarks/results/.

    tools/results_tables.py [--check] [ROOT]      ROOT: a repository, by default the one of this file

A table is the text between two marker lines of README.md, docs/, models/*/README.md or benchmarks/results/README.md:

    <!-- results:NAME -->
    <!-- /results:NAME -->

NAME is the name of a record without ".json".  `readme` is a summary of all records of kind "inference".  The accuracy
in a model card's front matter ("value: ...") is written from the record accuracy-cifar10.

--check writes nothing.  It prints each difference between pages and records, and exits with 1 if there is one.

A record is a JSON object: kind, processor, cores, versions (null: not recorded), command, unit, notes (optional), rows.
The kind selects the columns: "inference" and "training" (as benchmarks/peers.py measures them), "agreement" (top-1
agreement with fp32) and "table", whose `columns` map each heading to a format string over the fields of a row.
"""

import argparse
import json
import math
import pathlib
import re
import string
import sys
import textwrap

WIDTH = 120
PRECISIONS = ("fp32", "half", "int8")
REQUIRED = {"kind": str, "processor": str, "cores": int, "versions": dict, "command": str, "unit": str, "rows": list}
PAGES = ("README.md", "benchmarks/results/README.md", "docs/**/*.md", "models/*/README.md")
MARKER = re.compile(r"<!-- (/?)results:([a-z0-9-]+) -->")
CARD_VALUE = re.compile(r"^( +value: )[0-9.]+$", re.MULTILINE)
CARD_RECORD = "accuracy-cifar10"
DISPLAY = {
    "vit_tiny_patch16_224": "ViT-Ti/16",
    "vit_base_patch32_clip_224": "CLIP ViT-B/32",
    "vit_base_patch16_siglip_224": "SigLIP ViT-B/16",
    "vit_small_patch16_dinov3": "DINOv3 ViT-S/16",
    "vit_small_patch16_224": "ViT-S/16",
    "vit_base_patch16_224": "ViT-B/16",
    "depth_anything_v2_small": "Depth Anything V2-S, 518 px",
    "dpt_large": "DPT-L, 384 px",
    "eomt_base": "EoMT-B, 640 px",
    "cifar_vit_d192": "CIFAR ViT d192",
    "cifar_vit_d384": "CIFAR ViT d384",
    "eager": "PyTorch",
    "compiled": "PyTorch",
    "tuned": "PyTorch",
    "zentorch": "zentorch",
    "onnxruntime": "ONNX Runtime",
    "onnxruntime_static": "ONNX Runtime",
    "openvino": "OpenVINO",
    "litert": "LiteRT",
    "mnn": "MNN",
}


class ResultsError(Exception):
    """A record or a marker that cannot be used; the message names the file."""


def display(name):
    return DISPLAY.get(name, name)


# --- Records ---------------------------------------------------------------------------------------------------------


def read_records(folder):
    """{name: record} of a folder of JSON files."""
    records = {}
    for path in sorted(folder.glob("*.json")):
        try:
            record = json.loads(path.read_text())
        except ValueError as error:
            raise ResultsError(f"{path.name}: not JSON: {error}") from error
        validate(path.name, record)
        records[path.stem] = record
    return records


def validate(name, record):
    for field, kind in REQUIRED.items():
        if not isinstance(record.get(field), kind) or not record[field]:
            raise ResultsError(f"{name}: field '{field}' is missing, empty or no {kind.__name__}")
    if not isinstance(record.get("notes", []), list):
        raise ResultsError(f"{name}: field 'notes' is no list")
    if record["kind"] not in BODIES:
        raise ResultsError(f"{name}: kind '{record['kind']}', expected one of {', '.join(BODIES)}")
    try:
        for row in record["rows"]:
            validate_speedup(record["kind"], row)
        BODIES[record["kind"]](record)
    except KeyError as error:
        raise ResultsError(f"{name}: a row or the record lacks the field {error}") from error
    except ResultsError as error:
        raise ResultsError(f"{name}: {error}") from error


def validate_speedup(kind, row):
    """The stated speedup has to follow from the stated times, within their rounding."""
    if kind not in ("inference", "training"):
        return
    peer = min(row["peers"].values()) if kind == "inference" else row["torch"]
    half_digit = 0.05 if kind == "inference" else 0.5
    lowest = (peer - half_digit) / (row["vitrail"] + half_digit) - 0.00501
    highest = (peer + half_digit) / (row["vitrail"] - half_digit) + 0.00501
    if not lowest <= row["speedup"] <= highest:
        raise ResultsError(
            f"{row['model']} batch {row['batch']} {row['precision']}: speedup {row['speedup']}, but the "
            f"times {peer} and {row['vitrail']} give {peer / row['vitrail']:.3f}"
        )


# --- Tables ----------------------------------------------------------------------------------------------------------


def paragraph(text):
    # Code spans may continue on the next line; words stay whole, so that options keep their hyphens.
    return textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def markdown_table(heading, rows):
    return ["| " + " | ".join(cells) + " |" for cells in (heading, ["---"] * len(heading), *rows)]


def versions_text(records):
    versions = list(dict.fromkeys(pair for record in records for pair in record["versions"].items()))
    known = [f"{name} {version}" for name, version in versions if version]
    if len(known) < len(versions):
        known.append("other versions not recorded" if known else "versions not recorded")
    return ", ".join(known)


def conditions(record):
    """The lines above each table: processor, versions, unit and command."""
    return paragraph(
        f"{record['processor']}, {record['cores']} cores; {versions_text([record])}; {record['unit']}. "
        f"Command: `{record['command']}`"
    )


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def speedups(record):
    """{precision: the speedups of its rows}"""
    result = {}
    for row in record["rows"]:
        result.setdefault(row["precision"], []).append(row["speedup"])
    return {precision: result[precision] for precision in PRECISIONS if precision in result}


def speedup_cell(row):
    median = f" ({row['speedup_median']:.2f})" if "speedup_median" in row else ""
    return f"{row['speedup']:.2f}{median}"


def inference_body(record):
    """A line for each model and batch; for each precision the time of vitrail and its speedup over the fastest peer."""
    precisions = list(speedups(record))
    lines = {}
    for row in record["rows"]:
        peer = min(row["peers"], key=row["peers"].get)
        cell = f"{row['vitrail']:.1f}: {speedup_cell(row)} {display(peer)}"
        lines.setdefault((row["model"], row["batch"]), {})[row["precision"]] = cell
    heading = ["model, batch", *(f"{precision}: speedup over" for precision in precisions)]
    rows = [
        [f"{display(model)}, {batch}", *(cells.get(precision, "") for precision in precisions)]
        for (model, batch), cells in lines.items()
    ]
    means = ["geometric mean", *(f"{geometric_mean(values):.2f}" for values in speedups(record).values())]
    return markdown_table(heading, [*rows, means])


def training_body(record):
    rows = [
        [
            display(row["model"]),
            str(row["batch"]),
            row["precision"],
            str(row["vitrail"]),
            str(row["torch"]),
            speedup_cell(row),
            str(row["peak_mb"]),
            str(row["torch_peak_mb"]),
            f"{row['checkpointed_time']:.2f} times, {row['checkpointed_peak_mb']} MB",
        ]
        for row in record["rows"]
    ]
    heading = ["model", "batch", "precision", "vitrail", "PyTorch", "speedup", "peak MB", "PyTorch", "checkpointed"]
    return markdown_table(heading, rows)


def share_cell(part, total):
    return f"{part} of {total} ({100 * part / total:.2f} %)"


def agreement_body(record):
    rows = []
    for row in record["rows"]:
        confident = share_cell(row["confident_same_top1"], row["confident_views"]) if "confident_views" in row else ""
        rows.append(
            [row["program"], share_cell(row["same_top1"], row["views"]), confident, f"{row['relative_error']} %"]
        )
    heading = ["program", "top-1 as in fp32", "the same where p ≥ 0.2", "relative L2 error of the logits"]
    return markdown_table(heading, rows)


def table_body(record):
    def cell(template, row):
        fields = [field for _, field, _, _ in string.Formatter().parse(template) if field]
        known = [field in row for field in fields]
        if not all(known):
            # A cell such as "{ms} ({rate})" shows its first value alone if the second is absent.
            return str(row[fields[0]]) if known and known[0] else ""
        return template.format_map(row)

    # A column that no row has a value for is left out.
    columns = {title: [cell(template, row) for row in record["rows"]] for title, template in record["columns"].items()}
    columns = {title: cells for title, cells in columns.items() if any(cells)}
    return markdown_table(list(columns), [list(row) for row in zip(*columns.values(), strict=True)])


BODIES = {"inference": inference_body, "training": training_body, "agreement": agreement_body, "table": table_body}


def record_lines(record):
    lines = [*conditions(record), "", *BODIES[record["kind"]](record)]
    for note in record.get("notes", []):
        lines += ["", *paragraph(note)]
    return lines


def readme_lines(records):
    """The summary: for each processor and precision the geometric mean of the speedups, and their range."""
    chosen = [record for record in records.values() if record["kind"] == "inference"]
    if not chosen:
        raise ResultsError("no record of kind \"inference\" for the block 'readme'")
    precisions = [precision for precision in PRECISIONS if any(precision in speedups(record) for record in chosen)]
    rows = []
    for record in chosen:
        cells = [
            f"{geometric_mean(v):.2f} ({min(v):.2f} to {max(v):.2f})" if v else "not run"
            for v in (speedups(record).get(precision) for precision in precisions)
        ]
        rows.append([f"{record['processor']}, {record['cores']} cores", *cells])
    programs = {record["command"].split()[0] for record in chosen}
    fastest = {DISPLAY[min(row["peers"], key=row["peers"].get)] for record in chosen for row in record["rows"]}
    text = (
        f"Time of the fastest peer ({', '.join(sorted(fastest))}) over time of vitrail: the geometric mean over "
        "models and batch sizes, with minimum and maximum. "
        f"Command: `{'`, `'.join(sorted(programs))}`; {versions_text(chosen)}."
    )
    return [*paragraph(text), "", *markdown_table(["processor", *precisions], rows)]


# --- Pages -----------------------------------------------------------------------------------------------------------


def block_lines(name, records):
    if name == "readme":
        return readme_lines(records)
    if name not in records:
        raise ResultsError(f"there is no record {name}.json")
    return record_lines(records[name])


def render(text, records, where):
    """The page with the content of each block replaced."""
    result, open_block = [], None
    for number, line in enumerate(text.split("\n"), 1):
        marker = MARKER.fullmatch(line.strip())
        if marker:
            closing, name = marker.groups()
            if bool(closing) != (open_block is not None) or (closing and name != open_block):
                raise ResultsError(
                    f"{where}:{number}: unexpected {marker.group(0)}"
                    + (f", the block {open_block} is open" if open_block else "")
                )
            open_block = None if closing else name
            result.append(line)
            if open_block:
                try:
                    result += block_lines(name, records)
                except ResultsError as error:
                    raise ResultsError(f"{where}:{number}: {error}") from error
        elif not open_block:
            result.append(line)
    if open_block:
        raise ResultsError(f"{where}: the block {open_block} is not closed")
    return "\n".join(result)


def render_card(text, records, model, where):
    """A model card with the accuracy of its front matter replaced, where a record has it."""
    rows = records.get(CARD_RECORD, {"rows": []})["rows"]
    accuracy = next((row["fp32"] for row in rows if row["model"] == model), None)
    if accuracy is None or not text.startswith("---\n"):
        return text
    front, separator, body = text[4:].partition("\n---\n")
    front, count = CARD_VALUE.subn(rf"\g<1>{accuracy}", front)
    if count != 1:
        raise ResultsError(f"{where}: expected one accuracy ('value:') in the front matter, found {count}")
    return "---\n" + front + separator + body


def render_pages(root):
    """{path: (text, rendered text)} of all pages."""
    records = read_records(root / "benchmarks" / "results")
    pages = {}
    for path in sorted({path for pattern in PAGES for path in root.glob(pattern)}):
        where = path.relative_to(root)
        text = path.read_text()
        rendered = render(text, records, where)
        if where.parts[0] == "models":
            rendered = render_card(rendered, records, path.parent.name, where)
        pages[path] = text, rendered
    return pages


def first_difference(text, rendered):
    found, expected = text.split("\n"), rendered.split("\n")
    number = next(
        (i for i, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b), min(len(found), len(expected))
    )

    def line(lines):
        return lines[number] if number < len(lines) else "(end of the page)"

    return number + 1, line(found), line(expected)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--check", action="store_true", help="compare only; exit with 1 where a page differs")
    options = parser.parse_args(arguments)
    try:
        pages = render_pages(options.root)
    except ResultsError as error:
        print(f"results_tables: {error}", file=sys.stderr)
        return 1
    status = 0
    for path, (text, rendered) in pages.items():
        if text == rendered:
            continue
        if not options.check:
            path.write_text(rendered)
            print(f"results_tables: wrote {path.relative_to(options.root)}")
            continue
        number, found, expected = first_difference(text, rendered)
        print(
            f"{path.relative_to(options.root)}:{number}: differs from benchmarks/results\n  page:    {found}\n"
            f"  records: {expected}\nrun tools/results_tables.py to write the page",
            file=sys.stderr,
        )
        status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
