// SPDX-License-Identifier: Apache-2.0
// timm's RandAugment: timm/data/auto_augment.py, rand_augment_transform.
#include <algorithm>
#include <cmath>
#include <limits>

#include "vitrail/base/error.h"
#include "vitrail/data/augment/auto_augment_policies_internal.h"
#include "vitrail/data/augment/random_draws_internal.h"

namespace vitrail::data {
namespace {

constexpr double kMaxLevel = 10;  // timm's _LEVEL_DENOM

struct Settings {
  double magnitude = kMaxLevel, deviation = 0, max_magnitude = kMaxLevel, probability = 0.5;
  int64_t operations = 2;
  bool increasing = false;
  bool weighted = false;
};

// Order and weights are those of timm's _RAND_TRANSFORMS and _RAND_WEIGHTED_0.
struct WeightedOp {
  ImageOp op;
  double weight;
};
constexpr WeightedOp kOps[]{
    {ImageOp::autocontrast, 0.25}, {ImageOp::equalize, 0.05},   {ImageOp::invert, 0.05},       {ImageOp::rotate, 3},
    {ImageOp::posterize, 0.05},    {ImageOp::solarize, 0.05},   {ImageOp::solarize_add, 0.05}, {ImageOp::color, 0.25},
    {ImageOp::contrast, 0.05},     {ImageOp::brightness, 0.05}, {ImageOp::sharpness, 0.25},    {ImageOp::shear_x, 2},
    {ImageOp::shear_y, 2},         {ImageOp::translate_x, 1},   {ImageOp::translate_y, 1},
};
constexpr int64_t kNumOps = std::size(kOps);

double enhancement(double level, double sign, bool increasing) {
  return increasing ? std::max(0.1, 1.0 + sign * (level * 0.9)) : level * 1.8 + 0.1;
}

class RandAugment : public AugmentPolicy {
 public:
  RandAugment(const Settings& settings, const Filters& filters) : settings_(settings), filters_(filters) {
    if (filters_.empty()) filters_ = {image::Filter::bilinear, image::Filter::bicubic};
  }

  std::vector<OpCall> draw(RandomStream& random, int64_t width, int64_t height) const override {
    std::vector<OpCall> calls;
    for (const ImageOp op : choose(random)) {
      if (settings_.probability < 1 && random.uniform() > settings_.probability) continue;
      const double level = magnitude(random) / kMaxLevel;
      const double sign = random_coin(random) ? -1.0 : 1.0;
      const double argument = timm_argument(op, level, sign, settings_.increasing, width, height);
      calls.push_back({op, argument, random_choice(random, filters_)});
    }
    return calls;
  }

  bool fills_with_mean() const override { return true; }

 private:
  std::vector<ImageOp> choose(RandomStream& random) const {
    std::vector<ImageOp> ops;
    std::vector<WeightedOp> remaining(std::begin(kOps), std::end(kOps));
    for (int64_t i = 0; i < settings_.operations; ++i) {
      if (!settings_.weighted) {
        ops.push_back(kOps[random_index(random, kNumOps)].op);
        continue;
      }
      double total = 0;
      for (const WeightedOp& op : remaining) total += op.weight;
      double at = random.uniform() * total;
      auto chosen = remaining.begin();
      while (chosen + 1 != remaining.end() && at >= chosen->weight) at -= (chosen++)->weight;
      ops.push_back(chosen->op);
      remaining.erase(chosen);
    }
    return ops;
  }

  double magnitude(RandomStream& random) const {
    double magnitude = settings_.magnitude;
    if (std::isinf(settings_.deviation)) {
      magnitude *= random.uniform();
    } else if (settings_.deviation > 0) {
      magnitude += settings_.deviation * random.normal();
    }
    return std::clamp(magnitude, 0.0, settings_.max_magnitude);
  }

  Settings settings_;
  Filters filters_;
};

}  // namespace

double timm_argument(ImageOp op, double level, double sign, bool increasing, int64_t width, int64_t height) {
  switch (op) {
    case ImageOp::rotate:
      return sign * (level * 30.0);
    case ImageOp::posterize: {
      // timm can ask for 0 bits or fewer at the highest magnitudes; the result is then black.
      const int bits = static_cast<int>(level * 4);
      return std::clamp(increasing ? 4 - bits : bits, 0, 8);
    }
    case ImageOp::solarize: {
      const int threshold = std::min(256, static_cast<int>(level * 256));
      return increasing ? 256 - threshold : threshold;
    }
    case ImageOp::solarize_add:
      return std::min(128, static_cast<int>(level * 110));
    case ImageOp::color:
    case ImageOp::contrast:
    case ImageOp::brightness:
    case ImageOp::sharpness:
      return enhancement(level, sign, increasing);
    case ImageOp::shear_x:
    case ImageOp::shear_y:
      return sign * (level * 0.3);
    case ImageOp::translate_x:
      return sign * (level * 0.45) * static_cast<double>(width);
    case ImageOp::translate_y:
      return sign * (level * 0.45) * static_cast<double>(height);
    default:
      return 0;
  }
}

std::unique_ptr<AugmentPolicy> timm_rand_augment(const std::string& name, const Filters& filters) {
  Settings settings;
  std::string sections = name;
  if (const size_t at = sections.find("-tweights"); at != sections.npos) {
    settings.weighted = true;
    sections.erase(at, std::string("-tweights").size());
  }
  for (const auto& [key, value] : parse_sections(sections, {"m", "n", "p", "mstd", "mmax", "inc"})) {
    if (key == "m") settings.magnitude = static_cast<double>(integer_section(name, key, value, 0, 1000));
    if (key == "n") settings.operations = integer_section(name, key, value, 1, settings.weighted ? kNumOps : 100);
    if (key == "mmax") settings.max_magnitude = static_cast<double>(integer_section(name, key, value, 1, 1000));
    if (key == "inc") settings.increasing = integer_section(name, key, value, 0, 1) != 0;
    if (key == "mstd") settings.deviation = value > 100 ? std::numeric_limits<double>::infinity() : value;
    if (key == "p") {
      if (value > 1) throw Error("policy " + name, "a probability p of at most 1", str(value));
      settings.probability = value;
    }
  }
  return std::make_unique<RandAugment>(settings, filters);
}

}  // namespace vitrail::data
