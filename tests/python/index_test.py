# SPDX-License-Identifier: Apache-2.0
"""vitrail.Index against a search by hand, `vitrail search`, `vitrail duplicates` and FAISS.

Run by scripts/python_check, which sets VITRAIL_LIBRARY and VITRAIL_PROGRAM.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import vitrail

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "models" / "cifar10-vit"
CLIP = ROOT / "tests" / "fixtures" / "models" / "hf_clip"
TOLERANCE = 1e-6  # sums of 192 products in another order


def program(*arguments):
    command = [os.environ["VITRAIL_PROGRAM"], *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def lines_of(*arguments):
    return [json.loads(line) for line in program(*arguments, "--format", "json").splitlines()]


def image(i):
    """An image [40, 50, 3] of stripes whose width and colours depend on i."""
    rows, columns = np.indices((40, 50))
    stripes = (rows * (i % 3) + columns) // (2 + i) % 2
    return np.stack([stripes * 200, stripes * (40 * i % 256), rows * 6], -1).astype(np.uint8)


def unit_vectors(count, width=24, seed=0):
    vectors = np.random.default_rng(seed).normal(size=(count, width)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def vector_index(vectors, names=None):
    index = vitrail.Index()
    index.add(vectors, names)
    return index


def duplicates_by_hand(vectors, threshold):
    similar = vectors @ vectors.T >= threshold
    for _ in range(len(vectors)):  # the transitive closure
        similar = similar | (similar.astype(np.int64) @ similar.astype(np.int64) > 0)
    return sorted({tuple(np.flatnonzero(row).tolist()) for row in similar if row.sum() > 1})


class Vectors(unittest.TestCase):
    def test_search_is_that_of_a_sort(self):
        vectors, queries = unit_vectors(500), unit_vectors(40, seed=1)
        vectors[100:103] = vectors[7]  # equal scores: the lower row first
        queries[0] = 3 * vectors[7]
        scores = (queries / np.linalg.norm(queries, axis=1, keepdims=True)) @ vectors.T
        index = vector_index(vectors[:200])
        index.add(vectors[200:])
        for block in (1, 1 << 24):
            vitrail._index.BLOCK_SCORES = block
            for k, threshold in ((1, None), (10, None), (None, 0.3), (3, 0.4), (2, 0.99), (1000, None), (None, None)):
                for row, got in zip(scores, index.search(queries, k, threshold), strict=True):
                    want = [i for i in np.argsort(-row, kind="stable") if threshold is None or row[i] >= threshold][:k]
                    np.testing.assert_allclose([match.similarity for match in got], row[want], atol=TOLERANCE)
                    np.testing.assert_allclose(row[[match.row for match in got]], row[want], atol=TOLERANCE)
        self.assertEqual([match.row for match in index.search(vectors[7], 4)], [7, 100, 101, 102])
        self.assertEqual(index.search(vectors[7], 2)[1], ("100", index.search(vectors[7], 1)[0].similarity, 100))

    def test_duplicates_are_the_connected_groups(self):
        vectors = unit_vectors(60, width=6)
        index = vector_index(vectors)
        for block in (1, 1 << 24):
            vitrail._index.BLOCK_SCORES = block
            for threshold in (0.75, 0.85, 0.9, 0.95, 1.5):
                groups = index.duplicates(threshold)
                got = [tuple(match.row for match in group) for group in groups]
                self.assertEqual(got, duplicates_by_hand(vectors, threshold))
        chain = np.float32([[np.cos(a), np.sin(a)] for a in (0.0, 0.3, 0.6, 3.0)])  # the ends are not similar
        ((first, _, last),) = vector_index(chain, list("abcd")).duplicates()
        self.assertEqual((first.name, last.name), ("a", "c"))
        self.assertAlmostEqual(last.similarity, np.cos(0.6), places=6)

    def test_many_equal_vectors_are_one_group(self):
        index = vector_index(np.ones((3000, 8), np.float32))
        self.assertEqual([len(group) for group in index.duplicates()], [3000])
        two_kinds = vector_index(np.resize(np.eye(2, dtype=np.float32), (3000, 2)))
        found = [match.row for match in two_kinds.search(np.float32([1, 0]), 2000)]
        self.assertEqual(found, [*range(0, 3000, 2), *range(1, 1000, 2)])

    def test_an_empty_index_finds_nothing(self):
        index = vitrail.Index()
        self.assertEqual((len(index), index.names, index.duplicates()), (0, [], []))
        self.assertEqual(index.search(np.ones((2, 3), np.float32)), [[], []])
        self.assertEqual(index.search(np.ones(3, np.float32)), [])

    def test_mistakes_are_errors(self):
        index = vector_index(unit_vectors(3))
        wrong = [
            (lambda: index.add(np.ones((1, 5))), r"vectors: expected an array \[n, 24\], got \[1, 5\]"),
            (lambda: index.search(np.ones(5)), r"expected an array \[n, 24\]"),
            (lambda: index.add(np.full((1, 24), np.nan)), "finite values"),
            (lambda: index.add(unit_vectors(2), ["a"]), "names: expected 2 texts, got 1"),
            (lambda: index.add(unit_vectors(2), "ab"), "names: expected 2 texts, got 'ab'"),
            (lambda: index.search(unit_vectors(1), 0), "k: expected at least 1"),
            (lambda: index.add(image(0)), "no model"),
            (lambda: index.add(unit_vectors(2), errors="nan"), "errors: expected"),
            (lambda: vitrail.Index().save("/tmp/never.index"), "at least one vector"),
        ]
        for call, message in wrong:
            with self.subTest(message), self.assertRaisesRegex(vitrail.Error, message):
                call()
        self.assertEqual(len(index), 3)


class Files(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        from PIL import Image

        cls._folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls._folder.cleanup)
        cls.folder = pathlib.Path(cls._folder.name)
        (cls.folder / "photos").mkdir()
        cls.paths = [str(cls.folder / "photos" / f"{i:02}.png") for i in range(12)]
        for i, path in enumerate(cls.paths):
            Image.fromarray(image(i)).save(path)
        Image.fromarray(image(3)[:38, :48]).resize((70, 60)).save(cls.folder / "query.png")
        Image.fromarray(image(5)).resize((100, 80)).save(cls.folder / "photos" / "99.png")
        cls.paths.append(str(cls.folder / "photos" / "99.png"))

    def index(self):
        index = vitrail.Index(MODEL)
        index.add(self.folder / "photos")
        return index

    def assert_same(self, matches, results):
        self.assertEqual([(m.row, m.name) for m in matches], [(r["row"], r["path"]) for r in results])
        np.testing.assert_allclose([m.similarity for m in matches], [r["score"] for r in results], atol=TOLERANCE)

    def test_the_program_searches_a_saved_index(self):
        file = self.folder / "python.index"
        index = self.index()
        for dtype in ("fp32", "int8"):
            index.save(file, dtype=dtype)
            (line,) = lines_of("search", file, self.folder / "query.png", "--top", 4)
            again = vitrail.Index.load(file)
            self.assert_same(again.search(self.folder / "query.png", 4), line["results"])
        index.save(file)
        (line,) = lines_of("search", file, self.folder / "query.png", "--top", 4)
        self.assert_same(index.search(self.folder / "query.png", 4), line["results"])
        self.assertEqual(index.names, self.paths)

    def test_an_index_of_the_program_is_searched(self):
        file = self.folder / "program.index"
        options = ["-m", MODEL, "--tokens", "cls", "--layer", "-3", "--no-norm", "--exif", "--image-size", "48"]
        program("embed", *options, self.folder / "photos", "-o", self.folder / "features.npy")
        for dtype in ("fp32", "int8"):
            program("index", self.folder / "features.npy", "-o", file, "--dtype", dtype)
            index = vitrail.Index.load(file)
            turned = ROOT / "tests" / "fixtures" / "image" / "decode" / "exif_6.png"
            for query in (self.folder / "query.png", turned):
                (line,) = lines_of("search", file, query)
                self.assert_same(index.search(query), line["results"])
            index.add(self.paths[4])
            self.assertEqual([match.row for match in index.search(self.paths[4], 2)], [4, 13])

    def test_duplicates_are_those_of_the_program(self):
        for threshold in (0.9, 0.98):
            want = lines_of("duplicates", self.folder / "photos", "-m", MODEL, "--threshold", threshold)
            got = self.index().duplicates(threshold)
            self.assertTrue(got)
            self.assertEqual([[m.name for m in g] for g in got], [[i["path"] for i in g["images"]] for g in want])
            for group, line in zip(got, want, strict=True):
                similarities = [member["similarity"] for member in line["images"]]
                np.testing.assert_allclose([m.similarity for m in group], similarities, atol=TOLERANCE)

    def test_faiss_reads_a_saved_index(self):
        try:
            import faiss
        except ImportError:
            print("index_test: faiss is not installed: not tested with it", file=sys.stderr)
            return
        file, index = str(self.folder / "faiss.index"), self.index()
        for dtype in ("fp32", "int8"):
            index.save(file, dtype=dtype)
            scores, rows = faiss.read_index(file).search(index.vectors, 5)
            for i, matches in enumerate(vitrail.Index.load(file).search(index.vectors, 5)):
                np.testing.assert_allclose([match.similarity for match in matches], scores[i], atol=2e-6)
                self.assertEqual(set(rows[i]), {match.row for match in matches})
        foreign = faiss.IndexFlatIP(8)
        foreign.add(2 * unit_vectors(3, 8))
        faiss.write_index(foreign, file)
        pathlib.Path(file + ".json").unlink()
        pathlib.Path(file + ".txt").write_text("a\nb\nc\n")
        with self.assertWarnsRegex(UserWarning, "not of length 1"):
            index = vitrail.Index.load(file)
        self.assertAlmostEqual(index.search(unit_vectors(3, 8)[1], 1)[0].similarity, 2, places=5)

    def test_names_are_kept_whatever_is_in_them(self):
        names = ["a b.png", "line\nbreak\r", "\\back\\n", "é", os.fsdecode(b"\xff.png"), ""]
        index = vector_index(unit_vectors(len(names)), names)
        index.save(self.folder / "names.index")
        self.assertEqual(vitrail.Index.load(self.folder / "names.index").names, names)
        self.assertFalse((self.folder / "names.index.json").exists())

    def test_images_and_vectors_are_added_alike(self):
        model = vitrail.load(MODEL)
        pixels = [image(i) for i in range(3)]
        index = vitrail.Index(model)
        index.add(pixels[0])
        index.add(iter([self.paths[1], pixels[2]]), ["one", "two"])
        index.add([pathlib.Path(self.paths[1])])
        index.add([self.paths[0], b"no image", self.paths[2]], errors="skip")
        index.add(5 * model.embed(pixels))
        names = ["0", "one", "two", self.paths[1], self.paths[0], self.paths[2], "6", "7", "8"]
        self.assertEqual(index.names, names)
        want = model.embed(pixels, normalize=True)[[0, 1, 2, 1, 0, 2, 0, 1, 2]]
        np.testing.assert_allclose(index.vectors, want, atol=TOLERANCE)
        with self.assertRaises(vitrail.Error):
            index.add([self.paths[0], b"no image"])
        self.assertEqual(len(index), 9)

    def test_a_text_is_searched_by_its_embedding(self):
        clip = vitrail.load(CLIP)
        index = vitrail.Index(clip)
        index.add(self.paths[:4])
        (line,) = self.searched(index, "--text", "a cat")
        self.assert_same(index.search(clip.embed_text("a cat")), line["results"])

    def searched(self, index, *arguments):
        index.save(self.folder / "text.index")
        return lines_of("search", self.folder / "text.index", *arguments)

    def test_another_model_or_preprocessing_is_an_error(self):
        file = self.folder / "checked.index"
        self.index().save(file)
        for model in (ROOT / "tests" / "fixtures" / "models" / "hf_vit", vitrail.load(MODEL, image_size=48)):
            with self.assertRaisesRegex(vitrail.Error, "the preprocessing of the index"):
                vitrail.Index.load(file, model).search(self.paths[0])
        self.assertEqual(vitrail.Index.load(file, vitrail.load(MODEL)).search(self.paths[2], 1)[0].row, 2)
        record_file = pathlib.Path(f"{file}.json")
        record = json.loads(record_file.read_text())
        record_file.write_text(json.dumps({**record, "probe": record["probe"][::-1]}))
        with self.assertRaisesRegex(vitrail.Error, "cifar10-vit, that of the index"):
            vitrail.Index.load(file).search(self.paths[0])

    def test_damaged_files_are_errors(self):
        file = self.folder / "damaged.index"
        vector_index(unit_vectors(3)).save(file)
        whole, names = file.read_bytes(), pathlib.Path(f"{file}.txt")
        for size in (3, 20, 44, len(whole) - 1):
            file.write_bytes(whole[:size])
            with self.subTest(size), self.assertRaisesRegex(vitrail.Error, "truncated"):
                vitrail.Index.load(file)
        file.write_bytes(b"IxF2" + whole[4:])
        with self.assertRaisesRegex(vitrail.Error, "another format"):
            vitrail.Index.load(file)
        file.write_bytes(whole)
        names.write_text("one\n")
        with self.assertRaisesRegex(vitrail.Error, "3 lines, as the index's vectors, got 1"):
            vitrail.Index.load(file)
        names.write_text("a\nb\nc\n")
        for record in ("{}", "no JSON", "[]"):
            pathlib.Path(f"{file}.json").write_text(record)
            with self.subTest(record), self.assertRaisesRegex(vitrail.Error, "the record that"):
                vitrail.Index.load(file)
        foreign = self.folder / "notes.txt"
        foreign.write_text("mine")
        with self.assertRaisesRegex(vitrail.Error, "notes.txt"):
            vector_index(unit_vectors(3)).save(foreign)
        self.assertEqual(foreign.read_text(), "mine")


if __name__ == "__main__":
    unittest.main()
