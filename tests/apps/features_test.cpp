// SPDX-License-Identifier: Apache-2.0
// embed, attention, eval.
#include <cmath>
#include <fstream>
#include <span>
#include <sstream>

#include "tests/apps/cli_fixture.h"
#include "vitrail/base/npy.h"
#include "vitrail/base/zip_internal.h"
#include "vitrail/image/decode.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

std::string content_of_file(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

nlohmann::json record_of(const fs::path& list, size_t line) { return json_lines(content_of_file(list)).at(line); }

TEST(Embed, ShardsGiveAnArrayAndAListEach) {
  const fs::path folder = image_folder(2), out = scratch_folder() / "features";
  std::ofstream(folder / "a1.jpg") << "\xff\xd8\xff";  // fails between a.png and b.png
  std::ofstream(folder / "a.json") << "{}";
  const std::string shard = (folder / "00001.tar").string();
  ASSERT_EQ(std::system(("tar -C '" + folder.string() + "' -cf '" + shard + "' a.json a.png a1.jpg b.png").c_str()), 0);
  fs::remove(folder / "a.json");
  EXPECT_EQ(run_program({"embed", "-m", small_model(), shard, "-o", out}).status, 1);
  const NpyArray array = read_npy(out / "00001.npy");
  ASSERT_EQ(array.shape[0], 3);
  const size_t columns = static_cast<size_t>(array.shape[1]);
  ASSERT_EQ(run_program({"embed", "-m", small_model(), folder / "b.png", "-o", out / "b.npy"}).status, 0);
  const std::vector<float> last(array.f32.end() - static_cast<std::ptrdiff_t>(columns), array.f32.end());
  EXPECT_EQ(read_npy(out / "b.npy").f32, last);
  EXPECT_TRUE(std::isnan(array.f32[columns]));
  EXPECT_EQ(record_of(out / "00001.jsonl", 0)["status"], "ok");
  EXPECT_EQ(record_of(out / "00001.jsonl", 0)["key"], "a");
  EXPECT_EQ(record_of(out / "00001.jsonl", 0)["sha256"].get<std::string>().size(), 64u);
  EXPECT_NE(record_of(out / "00001.jsonl", 1)["status"], "ok");
  EXPECT_EQ(record_of(out / "00001.jsonl", 2)["file"], "b.png");
  EXPECT_EQ(record_of(out / "00001.jsonl", 2)["size"], fs::file_size(folder / "b.png"));
  const ProgramResult again = run_program({"embed", "-m", small_model(), shard, "-o", out});
  EXPECT_EQ(again.status, 0);
  EXPECT_TRUE(contains(again.err, "1 shard is complete already")) << again.err;
  for (const char* file : {"00001.npy", "00001.jsonl"}) {  // one alone, as a kill between both leaves it
    const std::string before = content_of_file(out / file);
    fs::remove(out / file);
    EXPECT_EQ(run_program({"embed", "-m", small_model(), shard, "-o", out}).status, 1) << "has a broken image";
    EXPECT_EQ(content_of_file(out / file), before);
  }
  EXPECT_EQ(run_program({"embed", "-m", small_model(), shard, folder, "-o", out}).status, 2);
}

TEST(Embed, AShardWithOtherImagesIsEmbeddedAgain) {
  const fs::path folder = image_folder(3), out = scratch_folder() / "features";
  const std::string shard = (folder / "1.tar").string();
  const auto images_after_packing = [&](const std::string& names) {
    EXPECT_EQ(std::system(("tar -C '" + folder.string() + "' -cf '" + shard + "' " + names).c_str()), 0);
    EXPECT_EQ(run_program({"embed", "-m", small_model(), shard, "-o", out}).status, 0);
    return read_npy(out / "1.npy").shape[0];
  };
  EXPECT_EQ(images_after_packing("a.png b.png"), 2);
  EXPECT_EQ(images_after_packing("a.png"), 1);
  EXPECT_EQ(images_after_packing("a.png b.png c.png"), 3);
  fs::copy_file(folder / "a.png", folder / "c.png", fs::copy_options::overwrite_existing);
  const std::string before = content_of_file(out / "1.npy");
  std::ofstream(folder / "c.png", std::ios::app) << "trailing bytes";
  EXPECT_EQ(images_after_packing("a.png b.png c.png"), 3);
  EXPECT_NE(content_of_file(out / "1.npy"), before) << "another size";
  fs::last_write_time(shard, fs::file_time_type::clock::now());
  EXPECT_TRUE(contains(run_program({"embed", "-m", small_model(), shard, "-o", out}).err, "complete already"))
      << "a newer file with the same images";
}

TEST(Embed, ACsvHasTheValuesOfTheArray) {
  const fs::path folder = image_folder(3), out = scratch_folder();
  std::ofstream(folder / "a1.png") << "\x89PNG\r\n\x1a\n";  // fails between a.png and b.png
  for (const char* name : {"f.npy", "f.csv"}) {
    EXPECT_EQ(run_program({"embed", "-m", small_model(), folder, "-o", out / name}).status, 1);
  }
  const NpyArray array = read_npy(out / "f.npy");
  const size_t columns = static_cast<size_t>(array.shape[1]);
  std::ifstream file(out / "f.csv");
  std::string line;
  std::getline(file, line);
  EXPECT_TRUE(line.starts_with("path,f0,f1,") && line.ends_with(",error")) << line;
  for (size_t row = 0; row < 4; ++row) {
    ASSERT_TRUE(std::getline(file, line));
    std::vector<std::string> fields;
    std::istringstream stream(line + ",");
    for (std::string field; std::getline(stream, field, ',');) fields.push_back(field);
    ASSERT_GE(fields.size(), columns + 1) << line;
    for (size_t i = 0; i < columns; ++i) {
      const float value = array.f32[row * columns + i];
      if (row == 1) {
        EXPECT_EQ(fields[i + 1], "") << line;
      } else {
        EXPECT_EQ(std::stof(fields[i + 1]), value) << line;
      }
    }
    EXPECT_EQ(contains(line, "a1.png: "), row == 1) << line;
  }
}

// The archive as zip readers see it: numpy reads it so (zip64 sizes, checked CRCs).
TEST(Embed, AnNpzHasTheArrayAndThePaths) {
  const fs::path folder = image_folder(3), out = scratch_folder();
  std::ofstream(folder / "\u00e4\xff.png") << "\x89PNG\r\n\x1a\n";  // fails; its name is not UTF-8
  for (const std::string dtype : {"fp32", "fp16"}) {
    for (const char* name : {"f.npy", "f.npz"}) {
      EXPECT_EQ(run_program({"embed", "-m", small_model(), folder, "-o", out / name, "--dtype", dtype}).status, 1);
    }
    const std::string archive = content_of_file(out / "f.npz"), array = content_of_file(out / "f.npy");
    const ZipReader reader(std::as_bytes(std::span(archive)), "f.npz");
    ASSERT_EQ(reader.entries().size(), 2u);
    const std::vector<std::byte> features = reader.read(*reader.find("features.npy"), 1 << 20);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(features.data()), features.size()), array) << dtype;
    const std::vector<std::byte> paths = reader.read(*reader.find("paths.npy"), 1 << 20);
    const std::string text(reinterpret_cast<const char*>(paths.data()), paths.size());
    const size_t header = text.find('\n') + 1, length = (folder / "?\\xff.png").string().size();
    EXPECT_TRUE(contains(text, "'<U" + std::to_string(length) + "'") && contains(text, "(4,)")) << text;
    ASSERT_EQ(text.size(), header + 4 * 4 * length);
    const auto* characters = reinterpret_cast<const char32_t*>(paths.data() + header);
    EXPECT_EQ(std::u32string(characters + 4 * length - 9, 9), U"\u00e4\\xFF.png");
    const std::string first = (folder / "a.png").string();
    EXPECT_EQ(std::u32string(characters, first.size()), std::u32string(first.begin(), first.end()));
  }
}

TEST(Embed, AnotherExtensionIsRefusedBeforeTheModelIsLoaded) {
  for (const char* name : {"f.parquet", "f.txt", "f", "f.NPZ"}) {
    const fs::path file = scratch_folder() / name;
    const ProgramResult result = run_program({"embed", "-m", "/nowhere", image_folder(1), "-o", file});
    EXPECT_EQ(result.status, 2) << result.err;
    EXPECT_TRUE(contains(result.err, "-o: expected FILE.npy, FILE.npz, FILE.csv or -, got " + file.string()))
        << result.err;
    EXPECT_FALSE(fs::exists(file));
  }
}

TEST(Embed, WritesRowsInInputOrderAndAFileOfPaths) {
  const auto folder = image_folder(3), file = scratch_folder() / "features.npy";
  const ProgramResult result = run_program({"embed", "-m", small_model(), folder, "-o", file, "--normalize"});
  ASSERT_EQ(result.status, 0) << result.err;
  const NpyArray features = read_npy(file);
  ASSERT_EQ(features.shape, (std::vector<int64_t>{3, 18}));
  for (size_t row = 0; row < 3; ++row) {
    double squares = 0;
    for (size_t i = 0; i < 18; ++i) squares += std::pow(features.f32[row * 18 + i], 2);
    EXPECT_NEAR(squares, 1.0, 1e-5);
  }
  std::ifstream paths(file.parent_path() / "features.txt");
  std::string first;
  std::getline(paths, first);
  EXPECT_EQ(first, (folder / "a.png").string());
}

TEST(Embed, TokensLayerAndNormSelectTheFeatures) {
  const auto folder = image_folder(1);
  auto embed = [&](std::vector<std::string> more) {
    const auto file = scratch_folder() / "f.npy";
    std::vector<std::string> arguments{"embed", "-m", small_model(), folder, "-o", file};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.status, 0) << result.err;
    return read_npy(file);
  };
  EXPECT_EQ(embed({"--tokens", "all"}).shape, (std::vector<int64_t>{1, 17, 18}));
  EXPECT_EQ(embed({"--tokens", "patch"}).shape, (std::vector<int64_t>{1, 4, 4, 18}));
  EXPECT_EQ(embed({"--tokens", "patch", "--layer", "-1,-2"}).shape, (std::vector<int64_t>{1, 2, 4, 4, 18}));
  const NpyArray cls = embed({"--tokens", "cls"});
  EXPECT_EQ(cls.f32, embed({}).f32);  // the head of this model reads the CLS token
  EXPECT_EQ(cls.f32, embed({"--tokens", "cls", "--layer", "1"}).f32);
  EXPECT_NE(cls.f32, embed({"--tokens", "cls", "--layer", "0"}).f32);
  EXPECT_NE(cls.f32, embed({"--tokens", "cls", "--no-norm"}).f32);
}

TEST(Embed, AFailedImageIsARowOfNaN) {
  const auto folder = image_folder(2), file = scratch_folder() / "f.npy";
  std::ofstream(folder / "a.png", std::ios::trunc);
  const ProgramResult result = run_program({"embed", "-m", small_model(), folder, "-o", file});
  EXPECT_EQ(result.status, 1);
  const NpyArray features = read_npy(file);
  ASSERT_EQ(features.shape, (std::vector<int64_t>{2, 18}));
  EXPECT_TRUE(std::isnan(features.f32[0]));
  EXPECT_FALSE(std::isnan(features.f32[18]));
}

// The figure begins with the photograph itself, and its map of the same size follows.
TEST(AttentionCommand, DrawsTheImageAtItsOwnSizeBesideItsMap) {
  const auto image = image_folder(1) / "a.png", file = scratch_folder() / "attention.png";
  const image::Image photo = image::read_image(image);
  image::Image first;
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{}, {"--layer", "0", "--head", "1"}, {"--rollout"}}) {
    std::vector<std::string> arguments{"attention", "-m", small_model(), image, "-o", file};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = run_program(arguments);
    ASSERT_EQ(result.status, 0) << result.err;
    const image::Image figure = image::read_image(file);
    ASSERT_GT(figure.width, 2 * photo.width);
    ASSERT_GT(figure.height, photo.height);
    for (int64_t y = 0; y < photo.height; ++y) {
      ASSERT_TRUE(std::equal(photo.row(y), photo.row(y) + photo.row_bytes(), figure.row(y))) << y;
    }
    EXPECT_NE(figure.pixels, first.pixels);
    first = figure;
  }
}

TEST(AttentionCommand, AllLayersAndHeadsAreAGridOfLabelledMaps) {
  const auto image = image_folder(1) / "a.png", file = scratch_folder() / "attention.png";
  const auto size_of = [&](const std::string& layer, const std::string& head) {
    const ProgramResult result =
        run_program({"attention", "-m", small_model(), image, "-o", file, "--layer", layer, "--head", head});
    EXPECT_EQ(result.status, 0) << result.err;
    const image::Image figure = image::read_image(file);
    return std::array{figure.width, figure.height};
  };
  const auto all = size_of("all", "all"), row = size_of("1", "all");  // two layers of two heads: 2 × 2 and 1 × 2
  EXPECT_EQ(all[0], row[0]);
  EXPECT_GT(all[1], row[1] + 200);
  EXPECT_GT(row[0], 2 * 224);  // tiles of a grid have one size
}

// 40 × 36 pixels are 4 × 4 patches of 10 × 9: the pixel is in the third patch of the first row, from x = 20 to y = 9.
TEST(AttentionCommand, ThePatchOfTheQueryIsOutlined) {
  const auto image = image_folder(1) / "a.png", file = scratch_folder() / "attention.png";
  const ProgramResult result = run_program({"attention", "-m", small_model(), image, "-o", file, "--crop-mode",
                                            "squash", "--crop-pct", "1", "--query", "25,4"});
  ASSERT_EQ(result.status, 0) << result.err;
  const image::Image photo = image::read_image(image), figure = image::read_image(file);
  int64_t wrong = 0;
  for (int64_t y = 0; y < photo.height; ++y) {
    for (int64_t x = 0; x < photo.width; ++x) {
      const bool edge = y < 9 && x >= 20 && x < 30 && (x == 20 || x == 29 || y == 0 || y == 8);
      const uint8_t* pixel = figure.row(y) + 3 * x;
      const std::array<uint8_t, 3> white{255, 255, 255};
      const uint8_t* expected = edge ? white.data() : photo.row(y) + 3 * x;
      wrong += !std::equal(pixel, pixel + 3, expected);
    }
  }
  EXPECT_EQ(wrong, 0);
}

TEST(AttentionCommand, AQueryIsAPixelThatTheModelSees) {
  const auto image = image_folder(1) / "a.png", folder = scratch_folder();
  const auto draw = [&](const std::string& query, const std::string& file) {
    return run_program({"attention", "-m", small_model(), image, "-o", folder / file, "--query", query});
  };
  for (const auto& [query, file] : {std::pair{"10,10", "a.png"}, {"20,20", "b.png"}}) {
    const ProgramResult result = draw(query, file);
    ASSERT_EQ(result.status, 0) << result.err;
  }
  EXPECT_NE(image::read_image(folder / "a.png").pixels, image::read_image(folder / "b.png").pixels);
  const ProgramResult outside = draw("5000,1", "c.png");
  EXPECT_EQ(outside.status, 1);
  EXPECT_TRUE(contains(outside.err, "a pixel that the model sees: X from ")) << outside.err;
  EXPECT_EQ(draw("5", "c.png").status, 2);
}

TEST(AttentionCommand, RawWeightsAreRowsThatSumToOne) {
  const auto image = image_folder(1) / "a.png", file = scratch_folder() / "raw.npy";
  const ProgramResult result = run_program({"attention", "-m", small_model(), image, "--raw", file});
  ASSERT_EQ(result.status, 0) << result.err;
  const NpyArray raw = read_npy(file);
  ASSERT_EQ(raw.shape, (std::vector<int64_t>{2, 2, 17, 17}));
  for (size_t row = 0; row < raw.f32.size(); row += 17) {
    double sum = 0;
    for (size_t i = 0; i < 17; ++i) sum += raw.f32[row + i];
    EXPECT_NEAR(sum, 1.0, 1e-5);
  }
}

TEST(AttentionCommand, AHeadOrLayerThatDoesNotExistIsAnError) {
  const auto image = image_folder(1) / "a.png", file = scratch_folder() / "attention.png";
  for (const std::string head : {"2", "-1", "x", "1x"}) {
    const ProgramResult result = run_program({"attention", "-m", small_model(), image, "-o", file, "--head=" + head});
    EXPECT_EQ(result.status, 1) << head;
    EXPECT_TRUE(contains(result.err, "--head: expected mean, all, or a head index from 0 to 1")) << result.err;
  }
  const ProgramResult layer = run_program({"attention", "-m", small_model(), image, "-o", file, "--layer", "2"});
  EXPECT_EQ(layer.status, 1);
  EXPECT_TRUE(contains(layer.err, "--layer: expected all, or a block index from 0 to 1")) << layer.err;
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(Eval, ReadsACsvAndSkipsUnreadableImages) {
  const auto folder = image_folder(3);
  const auto csv = folder / "labels.csv";
  std::ofstream(csv) << "file,class_index\na.png,0\nb.png,1\nc.png,2\n";
  ProgramResult result = run_program({"eval", "--format", "json", "-m", small_model(), csv});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto metrics = json_lines(result.out).at(0);
  EXPECT_EQ(metrics["images"], 3);
  EXPECT_GE(metrics["top5"], metrics["top1"]);
  EXPECT_GT(metrics["images_per_second"], 0);
  std::ofstream(folder / "b.png", std::ios::trunc) << "broken";
  result = run_program({"eval", "--format", "json", "-m", small_model(), csv});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(json_lines(result.out).at(0)["images"], 2);
}

TEST(Eval, AccuracyOfDeitTinyOnPhotographsMatchesTimm) {
  VITRAIL_SKIP_WITH_SANITIZER();
  VITRAIL_NEED_ASSETS(assets);
  const ProgramResult result =
      run_program({"eval", "--format", "json", "-m", assets / "weights/deit_tiny_patch16_224.fb_in1k",
                   assets / "images/nips2017/labels.csv"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_DOUBLE_EQ(json_lines(result.out).at(0)["top1"], 55.0 / 64.0);
}

}  // namespace
}  // namespace vitrail::testing
