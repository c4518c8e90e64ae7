// SPDX-License-Identifier: Apache-2.0
// Augmentation policies against timm and torchvision: arguments, resulting images and frequencies of draws.
#include "vitrail/data/augment/auto_augment_internal.h"

#include <zlib.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/data/support.h"
#include "vitrail/data/augment/auto_augment_policies_internal.h"

namespace vitrail::data {
namespace {

using nlohmann::json;

const json& golden() {
  static const json content = json::parse(std::ifstream(testing::fixture("data/policies.json")));
  return content;
}

ImageOp op_named(const std::string& name) {
  for (int i = 0; i <= static_cast<int>(ImageOp::translate_y); ++i) {
    if (name == name_of(static_cast<ImageOp>(i))) return static_cast<ImageOp>(i);
  }
  throw Error("no operation " + name);
}

// The image of tools/golden/data_policies.py.
image::Image test_image(int64_t width, int64_t height) {
  image::Image image = image::make_image(width, height, 3);
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < 3; ++c) {
        image.row(y)[x * 3 + c] = static_cast<uint8_t>((x * 7 + y * 13 + c * 29 + (x * y) % 11 * 5) % 256);
      }
    }
  }
  return image;
}

// The operations drawn with `draws` different keys.
std::vector<std::vector<OpCall>> drawn(const AugmentPolicy& policy, int draws, int64_t width = 32,
                                       int64_t height = 32) {
  std::vector<std::vector<OpCall>> all;
  for (int i = 0; i < draws; ++i) {
    RandomStream random(random_key("policy test", static_cast<uint64_t>(i)));
    all.push_back(policy.draw(random, width, height));
  }
  return all;
}

// Whether a count of successes in `trials` with probability p is within 5 standard deviations (false alarm: 6e-7).
::testing::AssertionResult plausible(int64_t count, int64_t trials, double p) {
  const double expected = static_cast<double>(trials) * p, deviation = std::sqrt(expected * (1 - p));
  if (std::abs(static_cast<double>(count) - expected) <= 5 * deviation + 1e-9) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << count << " of " << trials << ", expected " << expected << " ± " << deviation;
}

TEST(TimmPolicy, ArgumentsEqualTimms) {
  for (const json& entry : golden().at("timm")) {
    const double got =
        timm_argument(op_named(entry[0]), entry[2].get<double>() / 10, entry[3], entry[1] == 1, entry[4], entry[5]);
    EXPECT_DOUBLE_EQ(got, entry[6].get<double>()) << entry.dump();
  }
}

TEST(TorchvisionPolicy, ImagesEqualTorchvisionsAtEveryMagnitude) {
  const std::map<std::string, std::pair<TorchvisionRanges, int64_t>> spaces{
      {"rand", {kTorchvisionRanges, 31}}, {"auto", {kTorchvisionRanges, 10}}, {"wide", {kTorchvisionWideRanges, 31}}};
  for (const json& entry : golden().at("torchvision")) {
    const auto& [ranges, bins] = spaces.at(entry[0]);
    const ImageOp op = op_named(entry[1]);
    image::Image image = test_image(entry[4], entry[5]);
    const double argument = torchvision_argument(op, ranges, {bins, entry[2]}, entry[3], image.width, image.height);
    apply({op, argument}, image, {});
    EXPECT_EQ(crc32(0, image.pixels.data(), static_cast<uInt>(image.pixels.size())), entry[6].get<uLong>())
        << entry.dump() << " argument " << argument;
  }
}

TEST(TimmPolicy, DrawsOperationsUniformly) {
  constexpr int kDraws = 20000;
  std::map<std::string, int64_t> counts;
  int64_t calls = 0, mild = 0, cubic = 0;
  for (const auto& sequence : drawn(*policy_from_name("rand-m9-mstd0.5-inc1"), kDraws)) {
    EXPECT_LE(sequence.size(), 2u);
    for (const OpCall& call : sequence) {
      ++calls, ++counts[name_of(call.op)];
      if (call.filter == image::Filter::bicubic) ++cubic;
      if (call.op == ImageOp::shear_x && std::abs(call.argument) < 0.27) ++mild;
    }
  }
  EXPECT_TRUE(plausible(calls, 2 * kDraws, 0.5));
  EXPECT_TRUE(plausible(cubic, calls, 0.5));
  EXPECT_EQ(counts.size(), 15u);
  for (const auto& [name, count] : counts) EXPECT_TRUE(plausible(count, calls, 1.0 / 15)) << name;
  EXPECT_TRUE(plausible(mild, counts["shear_x"], 0.5)) << "below the mean magnitude of 9";
}

TEST(TimmPolicy, WeightedOperationsAreChosenWithoutReplacement) {
  constexpr int kDraws = 20000;
  const json& weights = golden().at("timm_weights");
  double total = 0;
  for (const auto& item : weights.items()) total += item.value().get<double>();
  std::map<std::string, int64_t> first;
  for (const auto& sequence : drawn(*policy_from_name("rand-m9-n3-p1-inc1-tweights"), kDraws)) {
    ASSERT_EQ(sequence.size(), 3u);
    EXPECT_NE(sequence[0].op, sequence[1].op);
    EXPECT_NE(sequence[0].op, sequence[2].op);
    ++first[name_of(sequence[0].op)];
  }
  for (const auto& item : weights.items()) {
    EXPECT_TRUE(plausible(first[item.key()], kDraws, item.value().get<double>() / total)) << item.key();
  }
}

TEST(TimmPolicy, MagnitudeIsClampedToItsRange) {
  double max_angle = 0, max_angle_15 = 0;
  for (const auto& sequence : drawn(*policy_from_name("rand-m9-n1-p1-mstd5"), 5000)) {
    if (sequence[0].op == ImageOp::rotate) max_angle = std::max(max_angle, std::abs(sequence[0].argument));
  }
  EXPECT_DOUBLE_EQ(max_angle, 30);
  for (const auto& sequence : drawn(*policy_from_name("rand-m9-n1-p1-mstd5-mmax15"), 5000)) {
    if (sequence[0].op == ImageOp::rotate) max_angle_15 = std::max(max_angle_15, std::abs(sequence[0].argument));
  }
  EXPECT_DOUBLE_EQ(max_angle_15, 45);
}

TEST(TimmPolicy, ADeviationAboveAHundredMakesTheMagnitudeUniform) {
  double sum = 0, largest = 0;
  int count = 0;
  for (const auto& sequence : drawn(*policy_from_name("rand-m9-n1-p1-mstd101"), 5000)) {
    if (sequence[0].op != ImageOp::rotate) continue;
    ++count;
    sum += std::abs(sequence[0].argument);
    largest = std::max(largest, std::abs(sequence[0].argument));
  }
  EXPECT_LE(largest, 27) << "0.9 of 30 degrees";
  EXPECT_GT(largest, 25);
  EXPECT_NEAR(sum / count, 13.5, 5 * 27 / std::sqrt(12.0 * count));
}

// A deviation of 100 is one still: nearly every magnitude is cut to one of the limits 0 and 10.
TEST(TimmPolicy, ADeviationOfAHundredIsNormal) {
  constexpr int kDraws = 5000;
  std::map<double, int64_t> angles;
  int64_t rotations = 0;
  for (const auto& sequence : drawn(*policy_from_name("rand-m5-n1-p1-mstd100"), kDraws)) {
    if (sequence[0].op == ImageOp::rotate) ++rotations, ++angles[std::abs(sequence[0].argument)];
  }
  const double inside = std::erf(0.05 / std::sqrt(2.0));  // within 5 of the mean
  EXPECT_TRUE(plausible(angles[0], rotations, (1 - inside) / 2));
  EXPECT_TRUE(plausible(angles[30], rotations, (1 - inside) / 2));
}

TEST(AugmentPolicy, SectionsHaveLimitsThatBelongToThem) {
  for (const auto& [allowed, refused] : {std::pair{"rand-m0", "rand-m0.5"},
                                         {"rand-m1000", "rand-m1001"},
                                         {"rand-n1", "rand-n0"},
                                         {"rand-n100", "rand-n101"},
                                         {"rand-n15-tweights", "rand-n16-tweights"},
                                         {"rand-mmax1", "rand-mmax0"},
                                         {"rand-mmax1000", "rand-mmax1001"},
                                         {"rand-inc0", "rand-inc0.5"},
                                         {"rand-inc1", "rand-inc2"},
                                         {"rand-p1", "rand-p1.25"},
                                         {"randaugment-n1", "randaugment-n0"},
                                         {"randaugment-n100", "randaugment-n101"},
                                         {"randaugment-b2-m1", "randaugment-b1-m0"},
                                         {"randaugment-b1000", "randaugment-b1001"},
                                         {"randaugment-m0", "randaugment-m0.5"},
                                         {"randaugment-m30", "randaugment-m31"},
                                         {"trivialaugment-b2", "trivialaugment-b1"},
                                         {"trivialaugment-b1000", "trivialaugment-b1001"}}) {
    EXPECT_NO_THROW(policy_from_name(allowed)) << allowed;
    EXPECT_THROW(policy_from_name(refused), Error) << refused;
  }
}

// Sections that a name leaves out have their documented values.
TEST(Policies, HaveTheDefaultsOfTheirReference) {
  for (const auto& [name, whole] : {std::pair{"rand", "rand-m10-n2-p0.5-mstd0-mmax10-inc0"},
                                    {"randaugment", "randaugment-n2-m9-b31"},
                                    {"trivialaugment", "trivialaugment-b31"}}) {
    const auto got = drawn(*policy_from_name(name), 200), want = drawn(*policy_from_name(whole), 200);
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(got[i].size(), want[i].size()) << name;
      for (size_t k = 0; k < want[i].size(); ++k) {
        EXPECT_EQ(got[i][k].op, want[i][k].op) << name;
        EXPECT_EQ(got[i][k].argument, want[i][k].argument) << name;
      }
    }
  }
}

TEST(TorchvisionPolicy, RandAugmentDrawsNOfFourteen) {
  constexpr int kDraws = 20000;
  std::map<std::string, int64_t> counts;
  int64_t left = 0;
  for (const auto& sequence : drawn(*policy_from_name("randaugment-n2-m9"), kDraws)) {
    ASSERT_EQ(sequence.size(), 2u);
    for (const OpCall& call : sequence) {
      ++counts[name_of(call.op)];
      if (call.op == ImageOp::rotate && call.argument < 0) ++left;
    }
  }
  EXPECT_EQ(counts.size(), 14u);
  for (const auto& [name, count] : counts) EXPECT_TRUE(plausible(count, 2 * kDraws, 1.0 / 14)) << name;
  EXPECT_TRUE(plausible(left, counts["rotate"], 0.5));
}

TEST(TorchvisionPolicy, TrivialAugmentDrawsEveryMagnitude) {
  constexpr int kDraws = 60000;
  std::map<double, int64_t> angles;
  int64_t rotations = 0;
  for (const auto& sequence : drawn(*policy_from_name("trivialaugment"), kDraws)) {
    ASSERT_EQ(sequence.size(), 1u);
    if (sequence[0].op != ImageOp::rotate) continue;
    ++rotations, ++angles[std::abs(sequence[0].argument)];
  }
  EXPECT_TRUE(plausible(rotations, kDraws, 1.0 / 14));
  EXPECT_EQ(angles.size(), 31u);
  for (const auto& [angle, count] : angles) EXPECT_TRUE(plausible(count, rotations, 1.0 / 31)) << angle;
}

// The frequency of an operation with its argument is the sum of its probabilities over the 25 sub-policies.
TEST(TorchvisionPolicy, AutoAugmentFollowsItsTables) {
  constexpr int kDraws = 50000;
  for (const std::string name : {"cifar10", "imagenet"}) {
    std::map<std::string, double> expected;  // calls per image
    for (const json& pair : golden().at("auto_augment").at(name)) {
      for (const json& step : pair) {
        const ImageOp op = op_named(step[0]);
        const double argument = torchvision_argument(op, kTorchvisionRanges, {10, step[2]}, 1, 32, 32);
        expected[str(step[0].get<std::string>(), " ", argument)] += step[1].get<double>() / 25;
      }
    }
    std::map<std::string, int64_t> counts;
    for (const auto& sequence : drawn(*policy_from_name("autoaugment-" + name), kDraws)) {
      for (const OpCall& call : sequence) {
        double argument = call.argument;
        if (is_signed(call.op)) {  // the argument of the positive sign
          const bool enhances = call.op == ImageOp::color || call.op == ImageOp::contrast ||
                                call.op == ImageOp::brightness || call.op == ImageOp::sharpness;
          const bool shifts = call.op == ImageOp::translate_x || call.op == ImageOp::translate_y;
          argument = enhances ? 1 + std::abs(argument - 1) : shifts ? -std::abs(argument) : std::abs(argument);
        }
        ++counts[str(name_of(call.op), " ", argument)];
      }
    }
    for (const auto& [call, rate] : expected) {
      // A sub-policy may contain a call twice, hence the factor of 2 in the variance.
      const double mean = rate * kDraws;
      EXPECT_NEAR(static_cast<double>(counts[call]), mean, 5 * std::sqrt(2 * mean) + 1e-9) << name << ": " << call;
      counts.erase(call);
    }
    for (const auto& [call, count] : counts) ADD_FAILURE() << name << " has no " << call;
  }
}

TEST(AugmentPolicy, EqualKeysGiveEqualSequences) {
  for (const std::string name : {"rand-m9-mstd0.5-inc1", "randaugment", "autoaugment-cifar10", "trivialaugment"}) {
    const auto policy = policy_from_name(name);
    const auto once = drawn(*policy, 50), again = drawn(*policy, 50);
    bool differs = false;
    for (size_t i = 0; i < once.size(); ++i) {
      ASSERT_EQ(once[i].size(), again[i].size());
      for (size_t j = 0; j < once[i].size(); ++j) {
        EXPECT_EQ(once[i][j].op, again[i][j].op);
        EXPECT_EQ(once[i][j].argument, again[i][j].argument);
        differs = differs || once[0].empty() || once[i][j].op != once[0][0].op;
      }
    }
    EXPECT_TRUE(differs) << name;
  }
}

TEST(AugmentPolicy, InvalidNamesAreErrors) {
  for (const std::string name : {"", "rand9", "rand-m9-x3", "rand-m", "rand-m9-m8", "rand-m-3", "rand-p1.5",
                                 "rand-m1.5", "rand-n0", "randaugment-m31", "randaugment-b1", "randaugment-n2-q7",
                                 "autoaugment", "autoaugment-svhn", "trivialaugment-m3", "augmix"}) {
    EXPECT_THROW(policy_from_name(name), Error) << name;
  }
  EXPECT_TRUE(contains(error_of([] { policy_from_name("rand-m9-x3"); }), "'x3'"));
  EXPECT_THROW(policy_from_name("randaugment", {image::Filter::lanczos}), Error);
}

TEST(TimmPolicy, OperationsAreAppliedWithTheirProbability) {
  constexpr int kDraws = 5000;
  for (const auto& [name, probability] : {std::pair{"rand-n3-p0.2", 0.2}, {"rand-n3-p0", 0.0}, {"rand-n3-p1", 1.0}}) {
    int64_t calls = 0;
    for (const auto& sequence : drawn(*policy_from_name(name), kDraws)) calls += std::ssize(sequence);
    EXPECT_TRUE(plausible(calls, 3 * kDraws, probability)) << name;
  }
}

}  // namespace
}  // namespace vitrail::data
