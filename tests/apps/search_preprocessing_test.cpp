// SPDX-License-Identifier: Apache-2.0
// Features of images that were preprocessed in another way are not compared: what embed records of it, and what index
// and search do with that.
#include <cstdlib>
#include <fstream>
#include <functional>

#include "tests/apps/option_effects.h"
#include "vitrail/base/error.h"
#include "vitrail/pipeline/model.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Images that each option changes: wide, tall, and with an EXIF orientation.
const fs::path& uneven_images() {
  static const fs::path folder = [] {
    const fs::path made = scratch_folder();
    write_noise(made / "wide.png", 60, 36, 1);
    write_noise(made / "tall.png", 30, 50, 2);
    fs::copy_file(fixture("image/decode/exif_6.png"), made / "turned.png");
    return made;
  }();
  return folder;
}

models::Preprocessing own_preprocessing() { return Model(small_model()).config().preprocessing; }

std::string embedded(const fs::path& file, const Arguments& more = {}) {
  run(Arguments{"embed", "-m", small_model(), uneven_images(), "-o", file} + more);
  return file;
}

json record_beside(const fs::path& array) {
  return json::parse(content_of(fs::path(array).replace_extension(".json")));
}

void change_record(const fs::path& record, const std::function<void(json&)>& change) {
  json changed = json::parse(content_of(record));
  change(changed);
  std::ofstream(record, std::ios::trunc) << changed;
}

void expect_each_image_finds_itself(const Arguments& search) {
  const auto lines = json_lines(run(search + Arguments{"--format", "json", "--top", "1"}).out);
  ASSERT_EQ(lines.size(), 3U);
  for (const json& line : lines) {
    EXPECT_EQ(line["results"][0]["path"], line["path"]) << ::testing::PrintToString(search);
    EXPECT_NEAR(line["results"][0]["score"].get<double>(), 1, 1e-5) << ::testing::PrintToString(search);
  }
}

const std::vector<Arguments>& each_option() {
  static const std::vector<Arguments> options{{"--exif"},
                                              {"--crop-mode", "squash"},
                                              {"--interpolation", "nearest"},
                                              {"--mean", "0.1,0.9,0.3"},
                                              {"--std", "0.7,0.1,0.4"},
                                              {"--crop-pct", "0.5"},
                                              {"--preset", "inception"},
                                              {"--image-size", "48,40"}};
  return options;
}

TEST(EmbeddingPreprocessing, IsInTheRecord) {
  const fs::path file = scratch_folder() / "f.npy";
  embedded(file);
  const models::Preprocessing own = own_preprocessing();
  const json record = record_beside(file)["preprocessing"];
  EXPECT_EQ(record["image_size"], json({32, 32}));
  EXPECT_EQ(record["mean"], *own.mean);
  EXPECT_EQ(record["std"], *own.std);
  EXPECT_EQ(record["interpolation"], *own.interpolation);
  EXPECT_EQ(record["crop_pct"], *own.crop_pct);
  EXPECT_EQ(record["crop_mode"], own.crop_mode);
  embedded(file, {"--image-size", "48,40", "--mean", "0.25", "--std", "0.7,0.1,0.4", "--interpolation", "nearest",
                  "--crop-pct", "0.5", "--crop-mode", "squash"});
  EXPECT_EQ(record_beside(file)["preprocessing"], json({{"image_size", {48, 40}},
                                                        {"mean", {0.25, 0.25, 0.25}},
                                                        {"std", {0.7, 0.1, 0.4}},
                                                        {"interpolation", "nearest"},
                                                        {"crop_pct", 0.5},
                                                        {"crop_mode", "squash"}}));
  run({"embed", "-m", dual_model(), "--text", "a cat", "-o", file});
  EXPECT_FALSE(record_beside(file).contains("preprocessing")) << "texts have none";
}

TEST(SearchPreprocessing, IsThatOfTheIndex) {
  for (const Arguments& option : each_option()) {
    const std::string index = index_of(uneven_images(), small_model(), option);
    expect_each_image_finds_itself({"search", index, uneven_images()});
    expect_each_image_finds_itself({"search", "-m", small_model(), index, uneven_images()});
    expect_each_image_finds_itself(Arguments{"search", index, uneven_images()} + option);
  }
}

TEST(SearchPreprocessing, AContradictingOptionIsRefusedWithBothValues) {
  const std::string index = index_of(uneven_images(), small_model());
  const auto expect_refusal = [&](const Arguments& options, const std::string& expected, const std::string& got) {
    EXPECT_EQ(refusal(Arguments{"search", index, uneven_images()} + options),
              "vitrail: error: " + index + ": expected embeddings with " + expected + ", got " + got + "\n");
  };
  expect_refusal({"--exif"}, "no --exif", "--exif");
  expect_refusal({"--crop-mode", "squash"}, "--crop-mode center", "--crop-mode squash");
  expect_refusal({"--image-size", "48"}, "--image-size 32,32", "--image-size 48,48");
  const std::vector<double> mean = *own_preprocessing().mean;
  const std::string values = str(mean.front(), ",", mean[mean.size() / 2], ",", mean.back());
  expect_refusal({"--mean", "0.1,0.9,0.3", "--exif"}, "--mean " + values + " no --exif", "--mean 0.1,0.9,0.3 --exif");
}

TEST(IndexPreprocessing, AMixtureIsRefused) {
  const fs::path folder = scratch_folder(), index = folder / "x.index";
  const std::string plain = embedded(folder / "plain.npy");
  for (const Arguments& option : each_option()) {
    const std::string other = embedded(folder / "other.npy", option);
    const std::string message = refusal({"index", plain, other, "-o", index});
    EXPECT_TRUE(message.starts_with("vitrail: error: " + other + ": expected embeddings ")) << message;
  }
  const std::string squashed = embedded(folder / "squashed.npy", {"--crop-mode", "squash", "--exif"});
  EXPECT_EQ(refusal({"index", squashed, plain, "-o", index}),
            "vitrail: error: " + plain +
                ": expected embeddings with --crop-mode squash --exif, got --crop-mode center no --exif\n");
  EXPECT_FALSE(fs::exists(index));
  run({"index", plain, embedded(folder / "same.npy"), "-o", index});
}

TEST(IndexPreprocessing, OfShardsOfOneFolderIsTheSame) {
  const fs::path out = scratch_folder() / "features", shards = scratch_folder();
  for (const char* name : {"1.tar", "2.tar"}) {
    const std::string shard = (shards / name).string();
    ASSERT_EQ(std::system(("tar -C " + uneven_images().string() + " -cf " + shard + " wide.png").c_str()), 0);
  }
  run({"embed", "-m", small_model(), shards / "1.tar", "-o", out});
  EXPECT_TRUE(contains(refusal({"embed", "-m", small_model(), shards / "2.tar", "-o", out, "--crop-mode", "squash"}),
                       "expected embeddings with --crop-mode center, got --crop-mode squash"));
}

// Records of older versions do not tell it.
TEST(SearchPreprocessing, OfAnOlderRecordIsNotChecked) {
  const fs::path folder = scratch_folder();
  const std::string index = index_of(uneven_images(), small_model());
  change_record(index + ".json", [](json& record) { record.erase("preprocessing"); });
  for (const Arguments& option : {Arguments{}, Arguments{"--crop-mode", "squash"}, Arguments{"--exif"}})
    EXPECT_EQ(run(Arguments{"search", index, uneven_images()} + option).err, "");
  const std::string old = embedded(folder / "old.npy"),
                    squashed = embedded(folder / "b.npy", {"--crop-mode", "squash"});
  change_record(folder / "old.json", [](json& record) { record.erase("preprocessing"); });
  EXPECT_EQ(run({"index", old, squashed, "-o", folder / "x.index"}).err, "");
}

// The orientation has been recorded for longer.
TEST(SearchPreprocessing, AnOlderRecordOfTheOrientationIsUsed) {
  const std::string index = index_of(uneven_images(), small_model(), {"--exif"});
  change_record(index + ".json", [](json& record) { record.erase("preprocessing"); });
  expect_each_image_finds_itself({"search", index, uneven_images()});
}

TEST(SearchPreprocessing, OfAMalformedRecordIsAnError) {
  const std::string index = index_of(uneven_images(), small_model());
  for (const json& value : {json(3), json::object(), json({{"image_size", {32}}})}) {
    change_record(index + ".json", [&](json& record) { record["preprocessing"] = value; });
    EXPECT_TRUE(contains(refusal({"search", index, uneven_images()}),
                         index + ".json: expected the record that `vitrail embed` writes beside embeddings, got "))
        << value;
  }
}

}  // namespace
}  // namespace vitrail::testing
