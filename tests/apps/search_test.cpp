// SPDX-License-Identifier: Apache-2.0
// index, search, duplicates: what they read and what they refuse.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <limits>
#include <set>

#include "tests/apps/option_effects.h"
#include "vitrail/analysis/flat_index.h"
#include "vitrail/analysis/knn.h"
#include "vitrail/base/npy.h"
#include "vitrail/weights/checkpoint.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

void write_file(const fs::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

// An array [rows, width] with a list of its names.
fs::path array_of(int64_t width, const std::vector<float>& values) {
  const fs::path file = scratch_folder() / "array.npy";
  const int64_t rows = std::ssize(values) / width;
  write_npy(file, std::array{rows, width}, values.data());
  std::ofstream names(fs::path(file).replace_extension(".txt"));
  for (int64_t r = 0; r < rows; ++r) names << "image " << r << "\n";
  return file;
}

TEST(Index, HasTheUnitVectorsOfShardsAndArraysInOrder) {
  const fs::path folder = image_folder(2), out = scratch_folder() / "features", index = scratch_folder() / "all.index";
  std::ofstream(folder / "a1.jpg") << "\xff\xd8\xff";  // fails between a.png and b.png
  const std::string shard = (folder / "00001.tar").string();
  ASSERT_EQ(std::system(("tar -C " + folder.string() + " -cf " + shard + " a.png a1.jpg b.png").c_str()), 0);
  EXPECT_EQ(run_program({"embed", "-m", small_model(), shard, "-o", out, "--dtype", "fp16"}).status, 1);
  run({"embed", "-m", small_model(), folder / "b.png", "-o", out.parent_path() / "b.npy"});
  const nlohmann::json report = json_of({"index", out, out.parent_path() / "b.npy", "-o", index});
  EXPECT_EQ(report["vectors"], 3);
  EXPECT_EQ(report["failed_images"], 1);
  EXPECT_EQ(content_of(index.string() + ".txt"),
            "00001.tar:a.png\n00001.tar:b.png\n" + (folder / "b.png").string() + "\n");
  const NpyArray features = read_npy(out.parent_path() / "b.npy");
  const Tensor unit = analysis::normalized_rows(Tensor::from<float>({features.shape[1]}, features.f32));
  const analysis::FlatIndex opened(index);
  std::vector<float> row(static_cast<size_t>(opened.width()));
  opened.read(2, 1, row.data());
  EXPECT_EQ(row, std::vector<float>(unit.data<float>(), unit.data<float>() + unit.numel()));
  opened.read(1, 1, row.data());
  for (size_t i = 0; i < row.size(); ++i) EXPECT_NEAR(row[i], unit.data<float>()[i], 1e-3) << "rounded to fp16";
}

// Each row asks for its ten nearest, by the exact vectors and by those of eight bits.
TEST(Index, RecallIsTheFractionOfTheTenNearestRows) {
  constexpr int64_t kRows = 100, kWidth = 3, kNearest = 10;
  const Tensor random = Tensor::randn({kRows, kWidth}, 1);
  const fs::path index = scratch_folder() / "x.index";
  const fs::path file = array_of(kWidth, {random.data<float>(), random.data<float>() + random.numel()});
  const double recall = json_of({"index", file, "-o", index, "--dtype", "int8"})["recall_at_10"];
  const Tensor exact = analysis::normalized_rows(random);
  const analysis::FlatIndex opened(index);
  const auto nearest = [&](const float* query, const float* rows) {
    std::vector<std::pair<float, int64_t>> order;
    for (int64_t r = 0; r < kRows; ++r) {
      float score = 0;
      for (int64_t c = 0; c < kWidth; ++c) score += query[c] * rows[r * kWidth + c];
      order.emplace_back(-score, r);
    }
    std::ranges::sort(order);
    std::set<int64_t> first;
    for (int64_t i = 0; i < kNearest; ++i) first.insert(order[static_cast<size_t>(i)].second);
    return first;
  };
  std::vector<float> rounded(kRows * kWidth);
  opened.read(0, kRows, rounded.data());
  int64_t hits = 0;
  for (int64_t r = 0; r < kRows; ++r) {
    const float* const query = exact.data<float>() + r * kWidth;
    const std::set<int64_t> want = nearest(query, exact.data<float>());
    for (const int64_t row : nearest(query, rounded.data())) hits += want.contains(row);
  }
  EXPECT_LT(hits, kRows * kNearest) << "all are found, so nothing was tested";
  EXPECT_NEAR(recall, static_cast<double>(hits) / (kRows * kNearest), 2.5 / (kRows * kNearest)) << "but for ties";
}

TEST(Index, RefusesRowsWithoutADirection) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const fs::path index = scratch_folder() / "x.index";
  EXPECT_TRUE(contains(refusal({"index", array_of(2, {1, 0, nan, 1}), "-o", index}), "row 1: expected finite values"));
  EXPECT_TRUE(contains(refusal({"index", array_of(2, {1, 0, 0, 0}), "-o", index}), "has a direction"));
  EXPECT_TRUE(contains(refusal({"index", array_of(2, {nan, nan}), "-o", index}), "at least one vector"));
  EXPECT_FALSE(fs::exists(index));
}

TEST(Index, RefusesArraysThatDoNotBelongTogether) {
  const fs::path index = scratch_folder() / "x.index", two = array_of(2, {1, 0}), three = array_of(3, {1, 0, 0});
  EXPECT_TRUE(contains(refusal({"index", two, three, "-o", index}), "vectors of width 2"));
  fs::path names = fs::path(two).replace_extension(".txt");
  write_file(names, "a\nb\n");
  EXPECT_TRUE(contains(refusal({"index", two, "-o", index}), "1 lines, as the array's rows"));
  fs::remove(names);
  EXPECT_TRUE(contains(refusal({"index", two, "-o", index}), "the names of its rows"));
  EXPECT_TRUE(contains(refusal({"index", scratch_folder(), "-o", index}), "a folder with arrays"));
  const fs::path one = scratch_folder() / "one.npy", other = scratch_folder() / "other.npy";
  run({"embed", "-m", small_model(), noise_folder(), "-o", one});
  run({"embed", "-m", small_model(), noise_folder(), "-o", other, "--layer", "0"});
  EXPECT_TRUE(contains(refusal({"index", one, other, "-o", index}), "embeddings by --tokens pooled --layer -1"));
}

TEST(Index, WithoutARecordHasNotThatOfTheOldIndex) {
  const std::string index = index_of(noise_folder(), small_model());
  ASSERT_TRUE(fs::exists(index + ".json"));
  run({"index", array_of(2, {1, 0}), "-o", index});
  EXPECT_FALSE(fs::exists(index + ".json"));
}

std::string other_model() {
  return with_config("timm_token", [](nlohmann::json& config) { config["pretrained_cfg"]["mean"] = {0.1, 0.9, 0.3}; });
}

// The small model with other weights: its features are all the same.
std::string other_weights() {
  const fs::path model = with_config("timm_token", [](nlohmann::json&) {});
  std::vector<std::pair<std::string, Tensor>> tensors;
  const weights::Checkpoint original = weights::Checkpoint::open(fs::path(small_model()) / "model.safetensors");
  for (const weights::TensorInfo& info : original.tensors()) {
    tensors.emplace_back(info.name, original.tensor(info.name).clone());
    const Tensor& copy = tensors.back().second;
    if (info.name == "norm.weight") std::fill_n(copy.data<float>(), copy.numel(), 0.0F);
    if (info.name == "norm.bias") std::fill_n(copy.data<float>(), copy.numel(), 1.0F);
  }
  weights::write_safetensors(model / "model.safetensors", tensors, {});
  return model;
}

TEST(Search, RefusesTheIndexOfAnotherModel) {
  const std::string index = index_of(noise_folder(), small_model());
  EXPECT_TRUE(
      contains(refusal({"search", "-m", other_weights(), index, noise_folder()}), "another model or preprocessing"));
  run({"search", "-m", other_model(), index, noise_folder()});  // the same weights, with the index's preprocessing
  run({"search", "-m", small_model(), index, noise_folder(), "--precision", "int8"});  // the same model
  fs::remove(index + ".json");
  EXPECT_TRUE(contains(run({"search", "-m", small_model(), index, noise_folder()}).err, "does not tell its model"));
  const std::string narrow = scratch_folder() / "narrow.index";
  run({"index", array_of(2, {1, 0}), "-o", narrow});
  EXPECT_TRUE(contains(refusal({"search", "-m", small_model(), narrow, noise_folder()}), "vectors of width 18"));
}

// FAISS keeps vectors of any length.
TEST(Search, TellsScoresThatAreNoCosines) {
  const std::string index = scratch_folder() / "x.index";
  for (const float length : {1.0F, 2.0F}) {
    Tensor vector = Tensor::zeros({18});
    vector.data<float>()[3] = length;
    analysis::FlatIndexWriter writer(index, DType::f32, 18);
    for (int i = 0; i < 2; ++i) writer.add(vector.data<float>(), 1), vector.data<float>()[3] = 1;
    writer.finish().commit();
    write_file(index + ".txt", "a\nb\n");
    const std::string warnings = run({"search", "-m", small_model(), index, noise_folder()}).err;
    EXPECT_EQ(contains(warnings, index + ": vectors of length 1 to 2, not 1: scores are inner products, not cosine "
                                         "similarities\n"),
              length == 2)
        << warnings;
  }
}

TEST(Search, RefusesDamagedFiles) {
  const std::string index = index_of(noise_folder(), small_model()), content = content_of(index);
  write_file(index, content.substr(0, content.size() - 1));
  EXPECT_TRUE(contains(refusal({"search", index, noise_folder()}), "truncated"));
  write_file(index, content);
  for (const std::string paths : {"one\n", "one\ntwo\nthree\n"}) {
    write_file(index + ".txt", paths);
    EXPECT_TRUE(contains(refusal({"search", index, noise_folder()}), "2 lines, as the index's vectors")) << paths;
  }
  write_file(index + ".json", "{}");
  EXPECT_EQ(run_program({"search", index, noise_folder()}).status, 1);
}

TEST(Search, UsesTheFeaturesOfTheIndex) {
  const std::string index = index_of(noise_folder(), small_model(), {"--tokens", "cls", "--layer", "0"});
  const auto lines = json_lines(run({"search", index, noise_folder(), "--format", "json"}).out);
  ASSERT_EQ(lines.size(), 2u);
  for (const auto& line : lines) {
    EXPECT_EQ(line["results"][0]["path"], line["path"]);
    EXPECT_NEAR(line["results"][0]["score"].get<double>(), 1, 1e-5);
  }
}

// The features of images by embed --normalize.
struct UnitFeatures {
  explicit UnitFeatures(const fs::path& folder) {
    const fs::path file = scratch_folder() / "unit.npy";
    run({"embed", "-m", small_model(), folder, "-o", file, "--normalize"});
    const NpyArray array = read_npy(file);
    width = static_cast<size_t>(array.shape[1]);
    values = array.f32;
    names = lines_of(content_of(fs::path(file).replace_extension(".txt")));
  }
  double cosine(size_t i, size_t j) const {
    double sum = 0;
    for (size_t c = 0; c < width; ++c) sum += double{values[i * width + c]} * values[j * width + c];
    return sum;
  }
  size_t width = 0;
  std::vector<float> values;
  std::vector<std::string> names;
};

TEST(Search, GivesTheFiveNearestImagesWithTheirRowsAndCosines) {
  const fs::path folder = image_folder(8);
  const UnitFeatures features(folder);
  const std::string index = index_of(folder, small_model());
  const auto lines = json_lines(run({"search", index, folder, "--format", "json"}).out);
  ASSERT_EQ(lines.size(), 8u);
  for (size_t query = 0; query < 8; ++query) {
    EXPECT_EQ(lines[query]["path"], features.names[query]);
    std::vector<double> cosines;
    for (size_t i = 0; i < 8; ++i) cosines.push_back(features.cosine(query, i));
    const auto& results = lines[query]["results"];
    ASSERT_EQ(results.size(), 5u);
    for (const auto& result : results) {
      const size_t row = result["row"];
      EXPECT_EQ(result["path"], features.names[row]);
      EXPECT_NEAR(result["score"].get<double>(), cosines[row], 1e-5);
    }
    std::ranges::sort(cosines, std::greater<>());
    for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(results[i]["score"].get<double>(), cosines[i], 1e-5) << "in order";
  }
}

TEST(Search, FindsNamesWithLineBreaks) {
  const fs::path folder = scratch_folder();
  fs::copy_file(noise_folder() / "a.png", folder / "a\nb\\c.png");
  const std::string index = index_of(folder, small_model());
  EXPECT_EQ(json_of({"search", index, noise_folder() / "a.png", "--format", "json"})["results"][0]["path"],
            (folder / "a\nb\\c.png").string());
}

TEST(Search, AFailedQueryIsReportedAndTheOthersAreAnswered) {
  const fs::path folder = scratch_folder();
  for (const char* name : {"a.png", "c.png"}) fs::copy_file(noise_folder() / "a.png", folder / name);
  std::ofstream(folder / "b.png") << "no image";
  const ProgramResult result =
      run_program({"search", index_of(noise_folder(), small_model()), folder, "--format", "json"});
  EXPECT_EQ(result.status, 1);
  const auto lines = json_lines(result.out);
  ASSERT_EQ(lines.size(), 3u);
  for (const size_t i : {0u, 2u}) EXPECT_TRUE(lines[i].contains("results")) << i;
  EXPECT_TRUE(lines[1].contains("error")) << "in its place";
}

TEST(Embed, RefusesAFolderOfAnotherModelsShards) {
  const fs::path folder = image_folder(1), out = scratch_folder() / "features";
  const std::string shard = (folder / "1.tar").string();
  ASSERT_EQ(std::system(("tar -C " + folder.string() + " -cf " + shard + " a.png").c_str()), 0);
  run({"embed", "-m", small_model(), shard, "-o", out});
  EXPECT_TRUE(contains(refusal({"embed", "-m", other_model(), shard, "-o", out}), "another model or preprocessing"));
  EXPECT_TRUE(
      contains(refusal({"embed", "-m", small_model(), shard, "-o", out, "--normalize"}), "without --normalize"));
}

// All images at a low threshold: their similarities are those to the first one.
TEST(Duplicates, HaveTheirSimilarityToTheFirstOfTheGroup) {
  const fs::path folder = image_folder(5);
  const UnitFeatures features(folder);
  const ProgramResult json = run({"duplicates", "-m", small_model(), folder, "--threshold", "-1", "--format", "json"});
  const auto images = json_lines(json.out).at(0)["images"];
  ASSERT_EQ(images.size(), 5u);
  std::string text = features.names[0] + "\n";
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(images[i]["path"], features.names[i]);
    EXPECT_EQ(images[i]["identical"], i == 0);
    EXPECT_NEAR(images[i]["similarity"].get<double>(), features.cosine(0, i), 1e-5);
    char line[32];
    std::snprintf(line, sizeof line, "  %9.4f  ", images[i]["similarity"].get<double>());
    if (i > 0) text += line + features.names[i] + "\n";
  }
  EXPECT_EQ(run({"duplicates", "-m", small_model(), folder, "--threshold", "-1"}).out, text);
  EXPECT_TRUE(contains(json.err, "5 images, 1 group\n")) << json.err;
}

TEST(Duplicates, ARepeatedImageCountsOnce) {
  const fs::path folder = image_folder(2);
  const ProgramResult once = run({"duplicates", "-m", small_model(), folder, folder / "a.png", "--threshold", "1"});
  EXPECT_EQ(once.out, "");
  EXPECT_TRUE(contains(once.err, "1 image is named several times and counted once")) << once.err;
  EXPECT_TRUE(contains(once.err, "2 images, 0 groups")) << once.err;
  const ProgramResult twice = run({"duplicates", "-m", small_model(), folder, folder, "--threshold", "1"});
  EXPECT_TRUE(contains(twice.err, "2 images are named several times and counted once")) << twice.err;
}

TEST(Duplicates, AreGroupedInTheOrderOfTheFirst) {
  const fs::path folder = scratch_folder();
  for (const char* name : {"a.png", "b.png"}) {
    fs::copy_file(noise_folder() / name, folder / name);
    fs::copy_file(noise_folder() / name, folder / (std::string("copy_") + name));
  }
  std::ofstream(folder / "c.png") << "no image";
  const ProgramResult result =
      run_program({"duplicates", "-m", small_model(), folder, "--threshold", "1", "--format", "json"});
  EXPECT_EQ(result.status, 1) << "c.png";
  const auto groups = json_lines(result.out);
  ASSERT_EQ(groups.size(), 2u);
  for (const size_t g : {0u, 1u}) {
    const std::string name = g == 0 ? "a.png" : "b.png";
    ASSERT_EQ(groups[g]["images"].size(), 2u);
    EXPECT_EQ(groups[g]["images"][0]["path"], (folder / name).string());
    EXPECT_EQ(groups[g]["images"][1]["path"], (folder / ("copy_" + name)).string());
  }
  EXPECT_TRUE(contains(result.err, "4 images, 2 groups")) << result.err;
}

}  // namespace
}  // namespace vitrail::testing
