// SPDX-License-Identifier: Apache-2.0
// torchvision's RandAugment and TrivialAugmentWide: torchvision/transforms/autoaugment.py.
#include <cmath>
#include <numbers>

#include "vitrail/base/error.h"
#include "vitrail/data/augment/auto_augment_policies_internal.h"
#include "vitrail/data/augment/random_draws_internal.h"

namespace vitrail::data {
namespace {

// torch.linspace(begin, end, bins)[bin] in single precision: counted from the nearer end, with one rounding of multiply
// and add, as PyTorch's AVX2 kernel (FMA) computes it.
double linspace(double begin, double end, int64_t bins, int64_t bin) {
  const float first = static_cast<float>(begin), last = static_cast<float>(end);
  const double step = (last - first) / static_cast<float>(bins - 1);
  const double value =
      bin < bins / 2 ? first + step * static_cast<double>(bin) : last - step * static_cast<double>(bins - bin - 1);
  return static_cast<float>(value);
}

// The shear angle in radians.  torchvision converts the tangent to degrees and back, which rounds.
double shear_angle(double magnitude) {
  const double degrees = std::atan(magnitude) * (180.0 / std::numbers::pi);
  return degrees * (std::numbers::pi / 180.0);
}

double translation(double max, int64_t size, MagnitudeBin magnitude) {
  const double end = max > 0 ? max : 150.0 / 331.0 * static_cast<double>(size);
  return std::trunc(linspace(0, end, magnitude.bins, magnitude.bin));
}

constexpr ImageOp kUniformOps[]{
    ImageOp::identity,  ImageOp::shear_x,    ImageOp::shear_y,      ImageOp::translate_x, ImageOp::translate_y,
    ImageOp::rotate,    ImageOp::brightness, ImageOp::color,        ImageOp::contrast,    ImageOp::sharpness,
    ImageOp::posterize, ImageOp::solarize,   ImageOp::autocontrast, ImageOp::equalize,
};

// Draws `operations` operations uniformly.  magnitude: the bin of all, or −1 for a bin drawn per operation.
class UniformPolicy : public AugmentPolicy {
 public:
  UniformPolicy(const TorchvisionRanges& ranges, int64_t operations, int64_t bins, int64_t magnitude,
                const Filters& filters)
      : ranges_(ranges), operations_(operations), bins_(bins), magnitude_(magnitude), filters_(filters) {
    if (filters_.empty()) filters_ = {image::Filter::nearest};
  }

  std::vector<OpCall> draw(RandomStream& random, int64_t width, int64_t height) const override {
    std::vector<OpCall> calls;
    for (int64_t i = 0; i < operations_; ++i) {
      const ImageOp op = kUniformOps[random_index(random, std::size(kUniformOps))];
      const int64_t bin = magnitude_ >= 0 ? magnitude_ : random_index(random, bins_);
      const double sign = is_signed(op) && random_coin(random) ? -1.0 : 1.0;
      calls.push_back(
          {op, torchvision_argument(op, ranges_, {bins_, bin}, sign, width, height), random_choice(random, filters_)});
    }
    return calls;
  }

  bool fills_with_mean() const override { return false; }

 private:
  TorchvisionRanges ranges_;
  int64_t operations_, bins_, magnitude_;
  Filters filters_;
};

}  // namespace

bool is_signed(ImageOp op) {
  switch (op) {
    case ImageOp::identity:
    case ImageOp::autocontrast:
    case ImageOp::equalize:
    case ImageOp::invert:
    case ImageOp::posterize:
    case ImageOp::solarize:
      return false;
    default:
      return true;
  }
}

double torchvision_argument(ImageOp op, const TorchvisionRanges& ranges, MagnitudeBin magnitude, double sign,
                            int64_t width, int64_t height) {
  const auto level = [&](double end) { return sign * linspace(0, end, magnitude.bins, magnitude.bin); };
  switch (op) {
    case ImageOp::shear_x:
      return std::tan(shear_angle(level(ranges.shear)));
    case ImageOp::shear_y: {
      const double angle = shear_angle(level(ranges.shear));
      return std::sin(angle) / std::cos(angle);
    }
    case ImageOp::translate_x:
      return -sign * translation(ranges.translate, width, magnitude);
    case ImageOp::translate_y:
      return -sign * translation(ranges.translate, height, magnitude);
    case ImageOp::rotate:
      return level(ranges.rotate);
    case ImageOp::color:
    case ImageOp::contrast:
    case ImageOp::brightness:
    case ImageOp::sharpness:
      return 1.0 + level(ranges.enhance);
    case ImageOp::solarize:
      return linspace(255, 0, magnitude.bins, magnitude.bin);
    case ImageOp::posterize: {
      const float per_bit = static_cast<float>(static_cast<double>(magnitude.bins - 1) / ranges.posterize);
      return 8.0 - std::nearbyint(static_cast<float>(magnitude.bin) / per_bit);
    }
    default:
      return 0;
  }
}

std::unique_ptr<AugmentPolicy> torchvision_rand_augment(const std::string& name, const Filters& filters) {
  std::map<std::string, double> sections = parse_sections(name, {"n", "m", "b"});
  sections.insert({{"n", 2}, {"m", 9}, {"b", 31}});
  const int64_t bins = integer_section(name, "b", sections["b"], 2, 1000);
  return std::make_unique<UniformPolicy>(kTorchvisionRanges, integer_section(name, "n", sections["n"], 1, 100), bins,
                                         integer_section(name, "m", sections["m"], 0, bins - 1), filters);
}

std::unique_ptr<AugmentPolicy> trivial_augment(const std::string& name, const Filters& filters) {
  std::map<std::string, double> sections = parse_sections(name, {"b"});
  sections.insert({"b", 31});
  return std::make_unique<UniformPolicy>(kTorchvisionWideRanges, 1, integer_section(name, "b", sections["b"], 2, 1000),
                                         -1, filters);
}

}  // namespace vitrail::data
