// SPDX-License-Identifier: Apache-2.0
// What embed records beside its arrays, and how index and search use it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <limits>

#include "tests/apps/cli_fixture.h"
#include "tests/apps/option_effects.h"
#include "tests/apps/shell.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/analysis/flat_index.h"
#include "vitrail/base/digest_internal.h"
#include "vitrail/base/npy.h"
#include "vitrail/base/random.h"
#include "vitrail/pipeline/dual_model.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

json record_of(const Arguments& more, const std::string& model = small_model()) {
  const fs::path file = scratch_folder() / "f.npy";
  run(Arguments{"embed", "-m", model, noise_folder(), "-o", file} + more);
  return json::parse(content_of(fs::path(file).replace_extension(".json")));
}

TEST(EmbeddingRecord, HasTheModelAndTheOptions) {
  const json plain = record_of({});
  EXPECT_EQ(plain["model"], small_model());
  EXPECT_EQ(plain["tokens"], "pooled");
  EXPECT_EQ(plain["layers"], json({-1}));
  EXPECT_EQ(plain["final_norm"], true);
  EXPECT_EQ(plain["normalized"], false);
  EXPECT_EQ(plain["dtype"], "fp32");
  EXPECT_EQ(plain["tome"], 0);
  EXPECT_EQ(plain["exif"], false);
  const json other = record_of({"--tokens", "cls", "--layer", "1,0", "--no-norm", "--normalize"});
  EXPECT_EQ(other["tokens"], "cls");
  EXPECT_EQ(other["layers"], json({1, 0}));
  EXPECT_EQ(other["final_norm"], false);
  EXPECT_EQ(other["normalized"], true);
  const json stored = record_of({"--dtype", "fp16", "--tome", "1", "--exif"});
  EXPECT_EQ(stored["dtype"], "fp16");
  EXPECT_EQ(stored["tome"], 1);
  EXPECT_EQ(stored["exif"], true);
  EXPECT_EQ(other["probe"], plain["probe"]) << "it is of the model, whatever the options";
}

// The pooled features, of length 1, of squares of 16 pixels with random colours in an image of 256.
TEST(EmbeddingRecord, ItsProbeIsOfAnImageOfRandomSquares) {
  for (const char* name : {"timm_token", "timm_gray"}) {
    const Model model(fixture(str("models/", name)));
    const int64_t channels = model.color_mode() == image::ColorMode::grey ? 1 : 3;
    image::Image image = image::make_image(256, 256, channels);
    for (int64_t y = 0; y < 256; ++y) {
      for (int64_t x = 0; x < 256; ++x) {
        for (int64_t c = 0; c < channels; ++c) {
          const auto square = static_cast<uint64_t>(y / 16 * 16 + x / 16);
          image.row(y)[channels * x + c] =
              static_cast<uint8_t>(random_key("probe", 3 * square + static_cast<uint64_t>(c)) >> 32);
        }
      }
    }
    const Tensor want = model.embed(image, {.l2_normalize = true});
    const std::vector<float> got = record_of({}, fixture(str("models/", name)))["probe"];
    ASSERT_EQ(std::ssize(got), want.numel());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want.data<float>()[i], 1e-5) << name << i;
  }
}

// An index of two images whose record has other values.
std::string index_with(const std::function<void(json&)>& change) {
  const std::string index = index_of(noise_folder(), small_model());
  json record = json::parse(content_of(index + ".json"));
  change(record);
  std::ofstream(index + ".json", std::ios::trunc) << record;
  return index;
}

// A vector of length 1 at this cosine from another.
std::vector<double> turned(const std::vector<double>& unit, double cosine) {
  std::vector<double> other(unit.size());
  double overlap = 0, squares = 0;
  other[0] = 1;
  for (size_t i = 0; i < unit.size(); ++i) overlap += unit[i] * other[i];
  for (size_t i = 0; i < unit.size(); ++i) other[i] -= overlap * unit[i], squares += other[i] * other[i];
  for (size_t i = 0; i < unit.size(); ++i)
    other[i] = cosine * unit[i] + std::sqrt(1 - cosine * cosine) * other[i] / std::sqrt(squares);
  return other;
}

TEST(EmbeddingRecord, ProbesOfACosineAboveNinetyFivePercentAreOfOneModel) {
  for (const auto& [cosine, same] : {std::pair(0.96, true), std::pair(0.94, false), std::pair(-0.99, false)}) {
    const std::string index = index_with([c = cosine](json& record) { record["probe"] = turned(record["probe"], c); });
    const Arguments search{"search", "-m", small_model(), index, noise_folder() / "a.png"};
    if (same) {
      EXPECT_EQ(run(search).err, "");
    } else {
      EXPECT_EQ(refusal(search), "vitrail: error: " + index + ": expected embeddings of " + small_model() + ", got " +
                                     small_model() + ", which is another model or preprocessing\n");
    }
  }
}

TEST(EmbeddingRecord, ErrorsNameWhatDiffers) {
  const std::string narrow = index_with([](json& record) {
    record["probe"] = {0.6, 0.8, 0}, record["model"] = "other";
  });
  EXPECT_EQ(refusal({"search", "-m", small_model(), narrow, noise_folder() / "a.png"}),
            "vitrail: error: " + narrow + ": expected embeddings of other of width 3, got " + small_model() +
                " with width 18\n");
  for (const std::string text : {"{}", "[", "{\"model\": 3}"}) {
    const std::string index = index_of(noise_folder(), small_model());
    std::ofstream(index + ".json", std::ios::trunc) << text;
    EXPECT_TRUE(contains(refusal({"search", "-m", small_model(), index, noise_folder() / "a.png"}),
                         index + ".json: expected the record that `vitrail embed` writes beside embeddings, got "))
        << text;
  }
}

// A relative path has the form of a name on the hub, but is not asked for there.
TEST(EmbeddingRecord, AModelThatIsNotHereIsNamed) {
  const std::string index = index_with([](json& record) { record["model"] = "runs/photos"; });
  EXPECT_EQ(refusal({"search", index, noise_folder() / "a.png"}),
            "vitrail: error: " + index + ": expected its model runs/photos, got nothing there (give -m MODEL)\n");
  EXPECT_EQ(run({"search", "-m", small_model(), index, noise_folder() / "a.png"}).err, "");
}

// Two arrays with other options beside each other.
TEST(EmbeddingRecord, OptionsAreNamedAsTheCommandTakesThem) {
  const fs::path folder = scratch_folder();
  const auto embedded = [&](const std::string& name, const Arguments& more) {
    run(Arguments{"embed", "-m", small_model(), noise_folder(), "-o", folder / (name + ".npy")} + more);
    return (folder / (name + ".npy")).string();
  };
  const std::string plain = embedded("a", {}), cls = embedded("b", {"--tokens", "cls"}),
                    raw = embedded("c", {"--no-norm", "--layer", "0"}), same = embedded("d", {"--normalize"});
  const auto message = [&](const std::string& first, const std::string& second) {
    return refusal({"index", first, second, "-o", folder / "x.index"});
  };
  EXPECT_EQ(message(plain, cls), "vitrail: error: " + cls +
                                     ": expected embeddings by --tokens pooled --layer -1, got --tokens cls --layer "
                                     "-1\n");
  EXPECT_EQ(message(raw, plain),
            "vitrail: error: " + plain +
                ": expected embeddings by --tokens pooled --layer 0 --no-norm, got --tokens pooled "
                "--layer -1\n");
  EXPECT_EQ(run({"index", plain, same, "-o", folder / "x.index"}).err, "") << "rows are scaled all the same";
  EXPECT_EQ(content_of(folder / "x.index.json"), content_of(folder / "a.json")) << "the first one's";
}

TEST(Index, WithoutARecordItWarnsAndHasNone) {
  const fs::path folder = scratch_folder();
  for (const char* name : {"a", "b"})
    run({"embed", "-m", small_model(), noise_folder(), "-o", folder / (std::string(name) + ".npy")});
  fs::remove(folder / "b.json");
  const fs::path index = folder / "x.index";
  EXPECT_EQ(run({"index", folder, "-o", index}).err,
            "vitrail: warning: " + (folder / "b.npy").string() +
                ": no record of its model is beside it: searches cannot check theirs\n");
  EXPECT_FALSE(fs::exists(index.string() + ".json"));
  EXPECT_EQ(run({"search", "-m", small_model(), index, noise_folder() / "a.png"}).err,
            "vitrail: warning: " + index.string() + ": does not tell its model, which may be another one\n");
  EXPECT_EQ(run({"--quiet", "index", folder, "-o", folder / "y.index"}).err, "");
  EXPECT_EQ(run({"--quiet", "search", "-m", small_model(), index, noise_folder() / "a.png"}).err, "");
}

void write_array(const fs::path& file, const std::vector<int64_t>& shape, const std::vector<float>& values) {
  write_npy(file, shape, values.data());
  std::ofstream names(fs::path(file).replace_extension(".txt"));
  for (int64_t r = 0; r < shape[0]; ++r) names << file.stem().string() << r << "\n";
}

// Rows of failed images at the beginning, in the middle and at the end of each array: their names are left out too.
TEST(Index, RowsOfFailedImagesAreLeftOutWithTheirNames) {
  const fs::path folder = scratch_folder(), index = folder / "x.index";
  write_array(folder / "a.npy", {6, 2}, {kNan, kNan, 3, 4, kNan, kNan, kNan, kNan, 0, -2, 5, 0});
  write_array(folder / "b.npy", {1, 2}, {kNan, kNan});
  write_array(folder / "c.npy", {3, 2}, {-4, 3, 0, 7, kNan, kNan});
  std::ofstream(folder / "c.csv") << "no array";
  const json report = json_of({"index", folder, "-o", index});
  EXPECT_EQ(report["vectors"], 5);
  EXPECT_EQ(report["width"], 2);
  EXPECT_EQ(report["dtype"], "fp32");
  EXPECT_EQ(report["failed_images"], 5);
  EXPECT_EQ(content_of(index.string() + ".txt"), "a1\na4\na5\nc0\nc1\n");
  const analysis::FlatIndex opened(index);
  std::vector<float> rows(10);
  opened.read(0, 5, rows.data());
  const std::vector<float> want{0.6F, 0.8F, 0, -1, 1, 0, -0.8F, 0.6F, 0, 1};
  for (size_t i = 0; i < 10; ++i) EXPECT_NEAR(rows[i], want[i], 1e-6) << i;
  // Arrays in the order in which they are named.
  run({"index", folder / "c.npy", folder / "a.npy", "-o", index});
  EXPECT_EQ(content_of(index.string() + ".txt"), "c0\nc1\na1\na4\na5\n");
}

TEST(Index, ErrorsNameTheArrayAndTheRow) {
  const fs::path folder = scratch_folder(), index = scratch_folder() / "x.index";
  const auto message = [&](const std::vector<int64_t>& shape, const std::vector<float>& values) {
    write_array(folder / "a.npy", shape, values);
    const std::string text = refusal({"index", folder / "a.npy", "-o", index});
    const std::string start = "vitrail: error: " + (folder / "a.npy").string();
    EXPECT_TRUE(text.starts_with(start)) << text;
    return text.substr(start.size());
  };
  EXPECT_EQ(message({2, 1, 2}, {1, 2, 3, 4}),
            ": expected an array [n, D]: a vector for each image, got one of 3 axes\n");
  EXPECT_EQ(message({3}, {1, 2, 3}), ": expected an array [n, D]: a vector for each image, got one of 1 axes\n");
  EXPECT_EQ(message({3, 2}, {1, 2, kNan, kNan, 3, kNan}),
            ", row 2: expected finite values, or NaN alone for an image that failed, got some values that are not "
            "finite\n");
  EXPECT_EQ(message({2, 2}, {1, 2, std::numeric_limits<float>::infinity(), 0}),
            ", row 1: expected finite values, or NaN alone for an image that failed, got some values that are not "
            "finite\n");
  EXPECT_EQ(message({2, 2}, {1, 2, 0, 0}), ", row 1: expected a vector that has a direction, got zeros\n");
  write_array(folder / "a.npy", {1, 2}, {1, 2});
  write_array(folder / "b.npy", {1, 3}, {1, 2, 3});
  EXPECT_EQ(refusal({"index", folder / "a.npy", folder / "b.npy", "-o", index}),
            "vitrail: error: " + (folder / "b.npy").string() + ": expected vectors of width 2, as in " +
                (folder / "a.npy").string() + ", got 3\n");
  fs::remove(folder / "a.txt");
  EXPECT_TRUE(contains(refusal({"index", folder / "a.npy", "-o", index}),
                       (folder / "a.npy").string() + ": expected the names of its rows in " +
                           (folder / "a.txt").string() + " or .jsonl, got none"));
  const fs::path empty = scratch_folder();
  EXPECT_EQ(
      refusal({"index", empty, "-o", index}),
      "vitrail: error: " + empty.string() + ": expected a folder with arrays of `vitrail embed` (.npy), got none\n");
  EXPECT_FALSE(fs::exists(index));
}

// The records of shards tell the names; a line that is no record is named.
TEST(Index, NamesOfShardsAreThoseOfTheirRecords) {
  const fs::path folder = scratch_folder(), index = scratch_folder() / "x.index";
  write_array(folder / "s.npy", {2, 2}, {1, 2, 3, 4});
  std::ofstream(folder / "s.jsonl") << R"({"key": "k", "file": "d/a.png"})"
                                    << "\n"
                                    << R"({"file": "b.png"})"
                                    << "\n";
  run({"index", folder, "-o", index});
  EXPECT_EQ(content_of(index.string() + ".txt"), "s.tar:d/a.png\ns.tar:b.png\n") << "not those of s.txt";
  std::ofstream(folder / "s.jsonl", std::ios::trunc) << R"({"file": "a.png"})"
                                                     << "\n"
                                                     << R"({"key": "b"})"
                                                     << "\n";
  EXPECT_TRUE(contains(refusal({"index", folder, "-o", index}),
                       (folder / "s.jsonl").string() + ":2: expected an object with the file's name, got "));
  std::ofstream(folder / "s.jsonl", std::ios::trunc) << R"({"file": "a.png"})"
                                                     << "\n";
  EXPECT_TRUE(contains(refusal({"index", folder, "-o", index}),
                       (folder / "s.jsonl").string() + ": expected 2 lines, as the array's rows, got 1"));
}

std::string tar_of(const fs::path& folder, const std::string& name, const std::string& files) {
  EXPECT_EQ(shell("cd '" + folder.string() + "' && tar -cf " + name + " " + files), 0);
  return (folder / name).string();
}

// Images are in the order of their paths, whatever that of the archive; other files are left out.
TEST(EmbedShards, RecordsTellSizeAndDigestOfEachImage) {
  const fs::path folder = image_folder(3), out = scratch_folder() / "features", index = scratch_folder() / "i";
  std::ofstream(folder / "c.png", std::ios::trunc) << "no image";
  std::ofstream(folder / "b.json") << "{}";
  const std::string shard = tar_of(folder, "7.tar", "c.png b.json b.png a.png");
  EXPECT_EQ(run_program({"embed", "-m", small_model(), shard, "-o", out}).status, 1);
  const std::vector<json> records = json_lines(content_of(out / "7.jsonl"));
  ASSERT_EQ(records.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    const std::string name = std::string(1, static_cast<char>('a' + i)) + ".png", content = content_of(folder / name);
    EXPECT_EQ(records[i]["file"], name);
    EXPECT_EQ(records[i]["key"], name.substr(0, 1));
    EXPECT_EQ(records[i]["size"], content.size());
    EXPECT_EQ(records[i]["sha256"], sha256(std::as_bytes(std::span(content))));
    EXPECT_EQ(records[i]["status"] == "ok", i < 2) << records[i];
  }
  EXPECT_TRUE(contains(records[2]["status"].get<std::string>(), "c.png")) << records[2];
  run({"embed", "-m", small_model(), folder / "a.png", "-o", out / "a.npy"});
  const std::vector<float> all = read_npy(out / "7.npy").f32;
  EXPECT_EQ(read_npy(out / "a.npy").f32, std::vector<float>(all.begin(), all.begin() + 18));
  fs::remove(out / "a.npy");
  // The folder's record is that of its arrays.
  run({"index", out, "-o", index});
  EXPECT_EQ(content_of(index.string() + ".json"), content_of(out / "embedding.json"));
  EXPECT_EQ(content_of(index.string() + ".txt"), "7.tar:a.png\n7.tar:b.png\n");
}

// Labels and captions of an image are no loss; archives of macOS have a hidden file for each file.
TEST(EmbedShards, WhatIsLeftOutIsSaidOnce) {
  const fs::path folder = image_folder(2), out = scratch_folder() / "features";
  for (const char* name : {"a.json", "a.cls", "c.heic", "c.txt", "._a.png", "__MACOSX"}) std::ofstream(folder / name);
  fs::create_symlink("a.png", folder / "d.png");
  const std::string first = tar_of(folder, "1.tar", "a.json a.cls b.png a.png ._a.png c.heic c.txt d.png a.png"),
                    second = tar_of(folder, "2.tar", "b.png ._a.png __MACOSX c.heic");
  const ProgramResult result = run({"embed", "-m", small_model(), first, second, "-o", out});
  EXPECT_EQ(result.err,
            "vitrail: warning: 8 files left out: 3 hidden, 2 .heic, 1 .txt, 1 of a repeated path, 1 symbolic links\n");
  std::vector<std::string> names;
  for (const json& record : json_lines(content_of(out / "1.jsonl"))) names.push_back(record["file"]);
  EXPECT_EQ(names, (std::vector<std::string>{"a.png", "b.png"}));
}

TEST(EmbedShards, OfOneNameOrOfOtherDataAreErrors) {
  const fs::path one = image_folder(1), two = image_folder(1), out = scratch_folder() / "features";
  const std::string first = tar_of(one, "x.tar", "a.png"), second = tar_of(two, "x.tar", "a.png");
  EXPECT_ERROR(refusal({"embed", "-m", small_model(), first, second, "-o", out}), "vitrail: error: INPUT",
               first + " and " + second + "\n");
  std::ofstream(one / "y.tar") << "no archive";
  EXPECT_EQ(refusal({"embed", "-m", small_model(), one / "y.tar", "-o", out}),
            "vitrail: error: " + (one / "y.tar").string() + ": expected a tar archive, got other data\n");
  const fs::path file = scratch_folder() / "file";
  std::ofstream(file) << "x";
  EXPECT_TRUE(contains(refusal({"embed", "-m", small_model(), first, "-o", file / "x"}),
                       (file / "x").string() + ": expected a folder for the features, got "));
}

TEST(EmbedShards, AFolderHasEmbeddingsOfOneLength) {
  const fs::path folder = image_folder(1);
  const std::string first = tar_of(folder, "1.tar", "a.png"), second = tar_of(folder, "2.tar", "a.png");
  for (const bool normalized : {false, true}) {
    const fs::path out = scratch_folder() / "features";
    const Arguments normalize = normalized ? Arguments{"--normalize"} : Arguments{};
    const Arguments other = normalized ? Arguments{} : Arguments{"--normalize"};
    run(Arguments{"embed", "-m", small_model(), first, "-o", out} + normalize);
    EXPECT_EQ(refusal(Arguments{"embed", "-m", small_model(), second, "-o", out} + other),
              "vitrail: error: " + out.string() + ": expected embeddings " + (normalized ? "with" : "without") +
                  " --normalize, got the opposite\n");
    EXPECT_EQ(run(Arguments{"embed", "-m", small_model(), first, second, "-o", out} + normalize).err,
              "1 shard is complete already\n");
    EXPECT_EQ(run(Arguments{"embed", "-m", small_model(), first, second, "-o", out, "--quiet"} + normalize).err, "");
  }
}

TEST(EmbedShards, AFolderHasRowsOfOneKind) {
  const fs::path folder = image_folder(1), out = scratch_folder() / "features";
  const std::string first = tar_of(folder, "1.tar", "a.png"), second = tar_of(folder, "2.tar", "a.png");
  run({"embed", "-m", small_model(), first, "-o", out});
  const std::string plain = "--dtype fp32 --tome 0";
  for (const auto& [more, text] : {std::pair(Arguments{"--dtype", "fp16"}, "--dtype fp16 --tome 0"),
                                   std::pair(Arguments{"--tome", "1"}, "--dtype fp32 --tome 1"),
                                   std::pair(Arguments{"--exif"}, "--dtype fp32 --tome 0 --exif")}) {
    EXPECT_EQ(refusal(Arguments{"embed", "-m", small_model(), second, "-o", out} + more),
              "vitrail: error: " + out.string() + ": expected embeddings by " + plain + ", got " + text + "\n");
  }
  EXPECT_FALSE(fs::exists(out / "2.npy"));
}

TEST(EmbedShards, AnOlderRecordIsOfPlainRows) {
  const fs::path folder = image_folder(1), out = scratch_folder() / "features";
  const std::string shard = tar_of(folder, "1.tar", "a.png");
  run({"embed", "-m", small_model(), shard, "-o", out});
  json record = json::parse(content_of(out / "embedding.json"));
  for (const char* key : {"dtype", "tome", "exif"}) EXPECT_EQ(record.erase(key), 1U) << key;
  std::ofstream(out / "embedding.json", std::ios::trunc) << record;
  EXPECT_EQ(run({"embed", "-m", small_model(), shard, "-o", out}).err, "1 shard is complete already\n");
  EXPECT_TRUE(contains(refusal({"embed", "-m", small_model(), shard, "-o", out, "--exif"}),
                       "got --dtype fp32 --tome 0 --exif"));
}

TEST(EmbedShards, TakeTheOrientationTheTypeAndTheBatchOfTheOptions) {
  const fs::path folder = scratch_folder(), out = scratch_folder();
  fs::copy_file(fixture("image/decode/exif_6.png"), folder / "a.png");
  const std::string shard = tar_of(folder, "1.tar", "a.png");
  const auto array = [&](const std::string& name, const Arguments& more) {
    run(Arguments{"embed", "-m", small_model(), shard, "-o", out / name} + more);
    return read_npy(out / name / "1.npy");
  };
  EXPECT_NE(array("turned", {"--exif"}).f32, array("stored", {}).f32);
  run({"embed", "-m", small_model(), folder / "a.png", "--exif", "-o", out / "a.npy"});
  EXPECT_EQ(read_npy(out / "turned/1.npy").f32, read_npy(out / "a.npy").f32);
  EXPECT_EQ(array("half", {"--dtype", "fp16"}).dtype, DType::f16);
}

// Without an image that could be read, the shape is that of the model's grid: rows, then columns.
TEST(EmbedArray, OfFailedImagesHasTheShapeOfTheOptions) {
  const fs::path folder = scratch_folder(), broken = folder / "x.png", good = fixture("data/red.png");
  std::ofstream(broken) << "no image";
  const auto shape = [&](const std::string& model, const Arguments& more) {
    EXPECT_EQ(
        run_program(Arguments{"embed", "-m", fixture("models/" + model), broken, good, "-o", folder / "f.npy"} + more)
            .status,
        1);
    return read_npy(folder / "f.npy").shape;
  };
  using Shape = std::vector<int64_t>;
  EXPECT_EQ(shape("timm_non_square", {"--tokens", "patch"}), (Shape{2, 6, 2, 18}));
  EXPECT_EQ(shape("timm_non_square", {"--tokens", "all"}), (Shape{2, 13, 18}));
  EXPECT_EQ(shape("timm_gray", {"--layer", "0,1", "--tokens", "cls"})[1], 2);
  for (const std::string name : {"f.csv", "f.npz"}) {
    EXPECT_EQ(run_program({"embed", "-m", small_model(), broken, good, "-o", folder / name}).status, 1);
    EXPECT_TRUE(fs::exists(folder / name)) << name;
  }
  const std::vector<std::string> rows = lines_of(content_of(folder / "f.csv"));
  ASSERT_EQ(rows.size(), 3U);
  std::string title = "path";
  for (int i = 0; i < 18; ++i) title += ",f" + std::to_string(i);
  EXPECT_EQ(rows[0], title + ",error");
  EXPECT_TRUE(rows[1].starts_with(broken.string() + std::string(19, ','))) << rows[1];
  EXPECT_NE(rows[1][broken.string().size() + 19], ',');
}

// A row of each image with nine digits, and the failures in their places, also in front.
TEST(EmbedCsv, HasARowForEachImageAndFailure) {
  const fs::path images = image_folder(4), folder = scratch_folder();
  for (const char* name : {"a.png", "c.png"}) std::ofstream(images / name, std::ios::trunc) << "no image";
  fs::rename(images / "d.png", images / "d,\"e\".png");
  for (const char* name : {"f.csv", "f.npy"})
    EXPECT_EQ(run_program({"embed", "-m", small_model(), images, "-o", folder / name}).status, 1);
  const std::vector<float> values = read_npy(folder / "f.npy").f32;
  const std::vector<std::string> rows = lines_of(content_of(folder / "f.csv"));
  ASSERT_EQ(rows.size(), 5U);
  const auto row_of = [&](size_t row) {
    std::string text;
    for (size_t i = 0; i < 18; ++i) {
      char number[32];
      std::snprintf(number, sizeof number, ",%.9g", static_cast<double>(values[18 * row + i]));
      text += number;
    }
    return text + ",";
  };
  EXPECT_EQ(rows[2], (images / "b.png").string() + row_of(1));
  EXPECT_EQ(rows[4], "\"" + images.string() + "/d,\"\"e\"\".png\"" + row_of(3));
  for (const size_t row : {1, 3}) {
    const std::string start = (images / (row == 1 ? "a.png" : "c.png")).string() + std::string(19, ',');
    EXPECT_TRUE(rows[row].starts_with(start) && contains(rows[row].substr(start.size()), "png: ")) << rows[row];
  }
}

// The largest finite value of fp16 is in its range, and negative values have the same limits.
TEST(EmbedHalf, TheRangeIsThatOfFp16) {
  const fs::path images = image_folder(1), file = scratch_folder() / "f.npy";
  for (const auto& [value, fits] : {std::pair(65504.0F, true), std::pair(-65504.0F, true), std::pair(65508.0F, false),
                                    std::pair(-65508.0F, false)}) {
    const fs::path model = with_config("timm_token", [](json&) {});
    std::vector<std::pair<std::string, Tensor>> tensors;
    for (const auto& [name, tensor] : read_golden(model / "model.safetensors").tensors) {
      tensors.emplace_back(name, tensor.clone());
      if (name == "norm.weight") std::fill_n(tensors.back().second.data<float>(), 18, 0.0F);
      if (name == "norm.bias") tensors.back().second.data<float>()[17] = value;
    }
    weights::write_safetensors(model / "model.safetensors", tensors, {});
    const ProgramResult result = run_program({"embed", "-m", model, images, "-o", file, "--dtype", "fp16"});
    EXPECT_EQ(result.status, fits ? 0 : 1) << value;
    const std::string problem = "--dtype fp16: expected values up to 65504 (--normalize, or --dtype fp32), got ";
    EXPECT_EQ(contains(result.err, problem + str(value)), !fits) << result.err;
    if (fits) {
      EXPECT_EQ(read_npy(file).f32[17], value);
    }
  }
}

// The list and the record beside an array may not be inputs either.
TEST(EmbedFiles, DoNotReplaceTheTextsThatAreEmbedded) {
  const fs::path folder = scratch_folder();
  std::ofstream(folder / "x.json") << "cat\n";
  const ProgramResult result = run_program({"embed", "-m", "m", "--text", folder / "x.json", "-o", folder / "x.npy"});
  EXPECT_EQ(result.status, 2);
  EXPECT_TRUE(contains(result.err, "-o (model): expected another file than the input " + (folder / "x.json").string()))
      << result.err;
}

TEST(EmbedFiles, ANpzAndACsvHaveNoneBesideThem) {
  for (const char* name : {"f.npz", "f.csv", "f.npy"}) {
    const fs::path folder = scratch_folder();
    run({"embed", "-m", small_model(), noise_folder(), "-o", folder / name});
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path().filename());
    std::ranges::sort(files);
    const std::vector<std::string> array{"f.json", "f.npy", "f.txt"};
    EXPECT_EQ(files, std::string(name) == "f.npy" ? array : std::vector<std::string>{name});
  }
}

// The texts of a dual model, and images by the option's length.
TEST(EmbedText, RecordsTheModelAndTheTexts) {
  const fs::path file = scratch_folder() / "t.npy";
  const std::string model = fixture("models/hf_clip");
  run({"embed", "-m", model, "--text", "a cat", "-o", file});
  EXPECT_EQ(content_of(fs::path(file).replace_extension(".txt")), "a cat\n");
  EXPECT_EQ(json::parse(content_of(fs::path(file).replace_extension(".json")))["model"], model);
  const Tensor want = DualModel(model).embed_texts({"a cat"}, false);
  const std::vector<float> got = read_npy(file).f32;
  ASSERT_EQ(got.size(), 10U);
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(got[i], want.data<float>()[i]);
}

// Texts come before images, each with its own results.
TEST(Search, TakesTextsAndImagesTogether) {
  const std::string model = fixture("models/open_clip"), index = index_of(noise_folder(), model);
  const std::string a = noise_folder() / "a.png";
  const auto lines = json_lines(run({"search", index, a, "--text", "a dog", "--format", "json", "--top", "9"}).out);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0]["text"], "a dog");
  EXPECT_EQ(lines[1]["path"], a);
  EXPECT_EQ(lines[1]["results"].size(), 2U) << "all of them";
  EXPECT_EQ(lines[1]["results"][0]["path"], a);
  EXPECT_EQ(lines[1]["results"][0]["row"], 0);
  std::string text;
  for (const json& line : lines) {
    text += (line.contains("text") ? line["text"] : line["path"]).get<std::string>() + "\n";
    for (const json& result : line["results"]) {
      char score[32];
      std::snprintf(score, sizeof score, "  %6.4f  ", static_cast<double>(result["score"].get<float>()));
      text += score + result["path"].get<std::string>() + "\n";
    }
  }
  EXPECT_EQ(run({"search", index, a, "--text", "a dog"}).out, text);
}

TEST(Search, WithoutAQueryThatCouldBeReadPrintsNothing) {
  const fs::path broken = scratch_folder() / "x.png";
  std::ofstream(broken) << "no image";
  const std::string index = index_of(noise_folder(), small_model());
  const ProgramResult text = run_program({"search", index, broken});
  EXPECT_EQ(text.status, 1);
  EXPECT_EQ(text.out, "");
  const auto lines = json_lines(run_program({"search", index, broken, "--format", "json"}).out);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0]["path"], broken.string());
  EXPECT_TRUE(contains(lines[0]["error"].get<std::string>(), broken.string()));
}

// A blank line is between groups.
TEST(Duplicates, GroupsOfTextAreApart) {
  const fs::path images = image_folder(2), folder = scratch_folder();
  for (const auto& [from, to] : {std::pair("a.png", "1.png"), std::pair("a.png", "2.png"), std::pair("b.png", "3.png"),
                                 std::pair("b.png", "4.png"), std::pair("b.png", "5.png")})
    fs::copy_file(images / from, folder / to);
  std::ofstream(folder / "6.png") << "no image";
  const ProgramResult result = run_program({"duplicates", "-m", small_model(), folder, "--threshold", "1"});
  EXPECT_EQ(result.status, 1);
  const auto path = [&](const char* name) { return (folder / name).string(); };
  EXPECT_EQ(result.out, path("1.png") + "\n  identical  " + path("2.png") + "\n\n" + path("3.png") + "\n  identical  " +
                            path("4.png") + "\n  identical  " + path("5.png") + "\n");
  EXPECT_TRUE(result.err.ends_with("\n5 images, 2 groups\n")) << result.err;
  const ProgramResult none = run_program({"duplicates", "-m", small_model(), folder / "6.png", "--quiet"});
  EXPECT_EQ(none.status, 1);
  EXPECT_EQ(none.out, "");
  EXPECT_EQ(lines_of(none.err).size(), 1U) << none.err;
}

TEST(Pca, WithoutAnImageTellsWhy) {
  const fs::path folder = scratch_folder(), broken = folder / "x.png";
  std::ofstream(broken) << "no image";
  const ProgramResult unreadable = run_program({"pca", "-m", small_model(), broken, "-o", folder / "out"});
  EXPECT_EQ(unreadable.status, 1);
  EXPECT_ERROR(lines_of(unreadable.err).back(), "vitrail: error: pca", "none that is readable");
  const ProgramResult none = run_program({"pca", "-m", small_model(), "-", "-o", folder / "out"});
  EXPECT_ERROR(lines_of(none.err).back(), "vitrail: error: pca", "none");
  const ProgramResult file = run_program({"pca", "-m", small_model(), noise_folder(), "-o", broken / "out"});
  EXPECT_TRUE(contains(file.err, (broken / "out").string() + ": expected a folder for the overlays, got ")) << file.err;
}

// An image on standard input has the name "image".
TEST(Pca, TheImageOfStandardInputHasAName) {
  const fs::path folder = scratch_folder() / "out";
  const ProgramResult result =
      run_program({"pca", "-m", small_model(), "-", "-o", folder}, content_of(noise_folder() / "a.png"));
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(fs::exists(folder / "image.png"));
}

}  // namespace
}  // namespace vitrail::testing
