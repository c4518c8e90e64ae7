// SPDX-License-Identifier: Apache-2.0
// Numbers that follow from others: rates of bench, parts of tensors, votes of neighbours.
#include <algorithm>
#include <array>
#include <cmath>

#include "tests/apps/option_effects.h"
#include "vitrail/analysis/flat_index.h"
#include "vitrail/analysis/knn.h"
#include "vitrail/base/npy.h"
#include "vitrail/image/decode.h"
#include "vitrail/pipeline/model.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

TEST(Bench, ImagesPerSecondAreThoseOfTheBatch) {
  const auto lines =
      json_lines(run({"bench", small_model(), "--batch", "1,3", "--seconds", "0.02", "--format", "json"}).out);
  ASSERT_EQ(lines.size(), 2U);
  for (const auto& line : lines) {
    const double batch = line["batch"].get<double>(), median = line["median_ms"].get<double>();
    EXPECT_NEAR(line["images_per_second"].get<double>(), 1e3 * batch / median, 1e-6 * 1e3 * batch / median);
    EXPECT_LE(line["min_ms"], line["median_ms"]);
    EXPECT_GE(line["runs"], 5);
  }
}

// Slices are those of Python, in which nothing is beyond the ends.
TEST(Inspect, SlicesEndWithTheTensor) {
  const auto values = [](const std::string& slice) {
    const std::string out =
        run({"inspect", "-m", small_model(), "--trace", "random", "--slice", "blocks.0.norm1[0, " + slice + ", :2]"})
            .out;
    return out.substr(out.find('\n'));  // without its title
  };
  EXPECT_EQ(values("15:99"), values("15:17"));
  EXPECT_EQ(values("15:"), values("15:17"));
  EXPECT_EQ(values("-99:2"), values("0:2"));
  EXPECT_EQ(values("-2:"), values("15:17"));
  EXPECT_EQ(values(":-15"), values("0:2"));
  EXPECT_EQ(values("5:2"), "\n[]\n");
  EXPECT_EQ(values("99:"), "\n[]\n");
  EXPECT_EQ(values("-1"), values("16"));
  for (const char* index : {"17", "-18"}) {
    EXPECT_EQ(run_program({"inspect", "-m", small_model(), "--trace", "random", "--slice",
                           "blocks.0.norm1[0, " + std::string(index) + "]"})
                  .status,
              1)
        << index;
  }
}

// exp(cosine / temperature) of each neighbour, for its class.
TEST(Knn, VotesAreOfCosines) {
  const fs::path train = scratch_folder(), test = scratch_folder();
  write_noise(train / "a/1.png", 32, 32, 1);
  for (const uint64_t seed : {2, 3}) write_noise(train / "b" / (std::to_string(seed) + ".png"), 32, 32, seed);
  write_noise(test / "a/1.png", 32, 32, 1);
  const Model model(small_model());
  const auto unit = [&](const fs::path& path) {
    return model.embed(model.read(path), {.l2_normalize = true}).contiguous();
  };
  const Tensor query = unit(test / "a/1.png");
  const auto cosine = [&](const fs::path& path) {
    const Tensor row = unit(path);
    double sum = 0;
    for (int64_t i = 0; i < row.numel(); ++i) sum += double{row.data<float>()[i]} * query.data<float>()[i];
    return sum;
  };
  const double a = cosine(train / "a/1.png"), b2 = cosine(train / "b/2.png"), b3 = cosine(train / "b/3.png");
  for (double temperature = 0.001; temperature < 20; temperature *= 3) {
    const double for_b = std::exp((b2 - a) / temperature) + std::exp((b3 - a) / temperature);
    if (std::abs(for_b - 1) < 1e-3) continue;
    const auto result = json_of(
        {"knn", "-m", small_model(), train, test, "--quiet", "--k", "3", "--temperature", std::to_string(temperature)});
    EXPECT_EQ(result["top1"], for_b < 1 ? 1 : 0) << temperature;
  }
}

// A colon ends a part of a specification of zsh.
TEST(Completion, ColonsAndBracketsOfDescriptionsAreEscapedForZsh) {
  int64_t descriptions = 0;
  for (const std::string& line : lines_of(run({"completion", "zsh"}).out)) {
    const size_t quote = line.find_first_not_of(' '), open = line.find('[');
    if (open == line.npos || (!line.substr(quote).starts_with("'(") && !line.substr(quote).starts_with("'*"))) continue;
    size_t close = open + 1;
    for (; close < line.size() && line[close] != ']'; ++close) {
      EXPECT_NE(line[close], ':') << line;
      EXPECT_NE(line[close], '[') << line;
      if (line[close] == '\\') ++close;
    }
    ++descriptions;
    EXPECT_TRUE(close + 1 == line.size() || line[close + 1] == ':' || line[close + 1] == '\'') << line;
  }
  EXPECT_GT(descriptions, 50);
}

TEST(Inspect, SlicesAreThoseOfNumPy) {
  const auto shape = [](const std::string& slice) {
    const std::string out =
        run({"inspect", "-m", small_model(), "--trace", "random", "--slice", "blocks.0.attn.scores[" + slice + "]"})
            .out;
    const std::string title = out.substr(0, out.find('\n'));
    return title.substr(title.rfind("] ") + 2);
  };
  EXPECT_EQ(shape(""), "[1, 2, 17, 17]");
  EXPECT_EQ(shape("0"), "[2, 17, 17]");
  EXPECT_EQ(shape("..., 0"), "[1, 2, 17]");
  EXPECT_EQ(shape("0, ..., 1:3"), "[2, 17, 2]");
  EXPECT_EQ(shape("0, 1, 2, ..., 3"), "[]");
  EXPECT_EQ(shape("0, :, -2:, :-1"), "[2, 2, 16]");
  for (const char* slice : {"1", "-2", "0, 0, 0, 0, 0", "x", "0:x", "1.5", "0;1"}) {
    EXPECT_EQ(run_program({"inspect", "-m", small_model(), "--trace", "random", "--slice",
                           "blocks.0.attn.scores[" + std::string(slice) + "]"})
                  .status,
              1)
        << slice;
  }
}

// A row of more than eight values shows the first three and the last three.
TEST(Inspect, LongRowsAreAbbreviated) {
  const auto numbers = [](const std::string& slice) {
    const std::string out =
        run({"inspect", "-m", small_model(), "--trace", "random", "--slice", "blocks.0.norm1[0, 0, " + slice + "]"})
            .out;
    return out.substr(out.find('\n') + 1);
  };
  const std::string eight = numbers(":8"), nine = numbers(":9"), last = numbers("6:9");
  EXPECT_EQ(std::ranges::count(eight, ','), 7);
  EXPECT_FALSE(contains(eight, "..."));
  EXPECT_EQ(nine.substr(0, nine.find(", ...")), eight.substr(0, nine.find(", ...")));
  EXPECT_TRUE(nine.ends_with(", ..., " + last.substr(1))) << nine << last;
  EXPECT_EQ(std::ranges::count(nine, ','), 6);
}

// More rows than a block of the file, whose last block is not full.
TEST(Index, KeepsEveryRowOfALargeArray) {
  const fs::path folder = scratch_folder();
  constexpr int64_t kRows = 2500, kWidth = 3;
  std::vector<float> values;
  std::ofstream names(folder / "x.txt");
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t i = 0; i < kWidth; ++i) values.push_back(std::sin(static_cast<float>(7 * row + 3 * i) + 0.5F));
    names << "image " << row << "\n";
  }
  names.close();
  write_npy(folder / "x.npy", std::array{kRows, kWidth}, values.data());
  const Tensor unit = analysis::normalized_rows(Tensor::from<float>({kRows, kWidth}, values));
  for (const std::string dtype : {"fp32", "int8"}) {
    const fs::path file = folder / (dtype + ".index");
    const auto report = json_of({"index", folder / "x.npy", "-o", file, "--dtype", dtype});
    EXPECT_EQ(report["vectors"], kRows);
    const analysis::FlatIndex index(file);
    std::vector<float> rows(static_cast<size_t>(kRows * kWidth));
    index.read(0, kRows, rows.data());
    for (size_t i = 0; i < rows.size(); ++i)
      ASSERT_NEAR(rows[i], unit.data<float>()[i], dtype == "fp32" ? 0 : 2.0 / 255) << dtype << i;
    EXPECT_EQ(lines_of(content_of(file.string() + ".txt")).back(), "image 2499");
    if (dtype == "int8") {
      EXPECT_GT(report["recall_at_10"], 0.1);
      EXPECT_LE(report["recall_at_10"], 1);
    }
  }
}

// Groups are joined by any of their images; a file that has several names is one image.
TEST(Duplicates, TellWhichFilesAreIdentical) {
  const fs::path images = image_folder(1), folder = scratch_folder();
  fs::copy_file(images / "a.png", folder / "1.png");
  fs::copy_file(images / "a.png", folder / "3.png");
  const image::Image pixels = image::read_image(images / "a.png");
  std::ofstream(folder / "2.ppm") << "P6 " << pixels.width << " " << pixels.height << " 255\n"
                                  << std::string(pixels.pixels.begin(), pixels.pixels.end());
  fs::create_symlink("1.png", folder / "4.png");
  const ProgramResult result =
      run({"duplicates", "-m", small_model(), folder, "--threshold", "0.999", "--format", "json"});
  const auto groups = json_lines(result.out);
  ASSERT_EQ(groups.size(), 1U);
  const auto& members = groups[0]["images"];
  ASSERT_EQ(members.size(), 3U) << groups[0];
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(members[i]["identical"], i != 1) << members[i];
    EXPECT_NEAR(members[i]["similarity"].get<double>(), 1, 1e-4);
  }
}

TEST(NumberOptions, HaveInclusiveLimits) {
  const auto status = [](const Arguments& more) {
    return run_program(Arguments{"bench", small_model(), "--seconds", "1e-9"} + more).status;
  };
  EXPECT_EQ(status({"--batch", "1"}), 0);
  for (const char* batch : {"0", "4097", "-1", "1.5", "x", ""}) EXPECT_EQ(status({"--batch", batch}), 2) << batch;
  for (const char* seconds : {"0", "-1", "nan", "inf", "1s"})
    EXPECT_EQ(run_program({"bench", small_model(), "--seconds", seconds}).status, 2) << seconds;
}

}  // namespace
}  // namespace vitrail::testing
