// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/mixup.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "vitrail/base/error.h"
#include "vitrail/base/random.h"
#include "vitrail/data/auto_augment_policies_internal.h"

namespace vitrail::data {
namespace {

// The logarithm of a Gamma(α) draw: Marsaglia & Tsang 2000 for α + 1, then brought down by U^(1/α).  In logarithms,
// because small α give numbers that a double cannot hold.
double log_gamma_draw(double alpha, RandomStream& random) {
  const double d = alpha + 1 - 1.0 / 3.0, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = random.normal(), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root, u = 1 - random.uniform();
    if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) {
      return std::log(d * v) + std::log(1 - random.uniform()) / alpha;
    }
  }
}

double beta_draw(double alpha, RandomStream& random) {
  const double a = log_gamma_draw(alpha, random), b = log_gamma_draw(alpha, random);
  return 1 / (1 + std::exp(b - a));
}

// timm's rand_bbox: an aspect like the picture's, its middle anywhere, cut at the edges; λ is what really stays.
MixupParams cut_mix(double lambda, int64_t height, int64_t width, RandomStream& random) {
  const double ratio = std::sqrt(1 - lambda);
  const auto cut_height = static_cast<int64_t>(static_cast<double>(height) * ratio);
  const auto cut_width = static_cast<int64_t>(static_cast<double>(width) * ratio);
  const int64_t y = below(random, height), x = below(random, width);
  MixupParams mix{.cut = true};
  mix.top = std::clamp<int64_t>(y - cut_height / 2, 0, height);
  mix.bottom = std::clamp<int64_t>(y + (cut_height + 1) / 2, 0, height);
  mix.left = std::clamp<int64_t>(x - cut_width / 2, 0, width);
  mix.right = std::clamp<int64_t>(x + (cut_width + 1) / 2, 0, width);
  const int64_t area = (mix.bottom - mix.top) * (mix.right - mix.left);
  mix.lambda = 1 - static_cast<double>(area) / static_cast<double>(height * width);
  return mix;
}

// One of a pair becomes its mix with what the other was.
void mix_into(const MixupParams& mix, int64_t channels, int64_t height, int64_t width, float* own,
              const float* partner) {
  if (mix.cut) {
    for (int64_t row = 0; row < channels * height; ++row) {
      const int64_t y = row % height;
      if (y < mix.top || y >= mix.bottom) continue;
      std::copy(partner + row * width + mix.left, partner + row * width + mix.right, own + row * width + mix.left);
    }
    return;
  }
  const auto keep = static_cast<float>(mix.lambda), take = static_cast<float>(1 - mix.lambda);
  for (int64_t i = 0; i < channels * height * width; ++i) own[i] = own[i] * keep + partner[i] * take;
}

}  // namespace

void check(const MixupOptions& options) {
  const auto share = [](const char* name, double value) {
    if (!(value >= 0 && value <= 1)) throw Error(str("mix.", name), "0 to 1", str(value));
  };
  if (!(options.mixup_alpha >= 0)) throw Error("mix.mixup_alpha", "at least 0", str(options.mixup_alpha));
  if (!(options.cutmix_alpha >= 0)) throw Error("mix.cutmix_alpha", "at least 0", str(options.cutmix_alpha));
  share("probability", options.probability);
  share("switch_probability", options.switch_probability);
  share("label_smoothing", options.label_smoothing);
  if (options.any() && options.classes < 2) throw Error("mix.classes", "at least 2", str(options.classes));
}

MixupParams draw_mixup(const MixupOptions& options, uint64_t seed, int64_t epoch, int64_t step, int64_t position,
                       int64_t height, int64_t width) {
  if (!options.active(epoch)) return {};
  const uint64_t key =
      random_key("mix", random_key("epoch", seed, static_cast<uint64_t>(epoch)), static_cast<uint64_t>(step));
  const bool per_batch = options.mode == MixupOptions::Mode::batch;
  RandomStream random(key, per_batch ? 0 : static_cast<uint64_t>(position) + 1);
  if (random.uniform() >= options.probability) return {};
  const bool both = options.mixup_alpha > 0 && options.cutmix_alpha > 0;
  const bool cut = both ? random.uniform() < options.switch_probability : options.cutmix_alpha > 0;
  const double lambda = beta_draw(cut ? options.cutmix_alpha : options.mixup_alpha, random);
  return cut ? cut_mix(lambda, height, width, random) : MixupParams{.lambda = lambda};
}

void mix_pair(const MixupParams& first_mix, const MixupParams& second_mix, int64_t channels, int64_t height,
              int64_t width, float* first, float* second) {
  if (first == second) return;
  const int64_t size = channels * height * width;
  if (!first_mix.cut && !second_mix.cut) {
    const auto keep_first = static_cast<float>(first_mix.lambda), take_first = static_cast<float>(1 - first_mix.lambda);
    const auto keep_second = static_cast<float>(second_mix.lambda),
               take_second = static_cast<float>(1 - second_mix.lambda);
    for (int64_t i = 0; i < size; ++i) {
      const float a = first[i], b = second[i];
      first[i] = a * keep_first + b * take_first;
      second[i] = b * keep_second + a * take_second;
    }
    return;
  }
  const std::vector<float> before(first, first + size);
  mix_into(first_mix, channels, height, width, first, second);
  mix_into(second_mix, channels, height, width, second, before.data());
}

void mixup_target(const MixupOptions& options, double lambda, int64_t own, int64_t partner, float* out) {
  const double off = options.label_smoothing / static_cast<double>(options.classes);
  const double on = 1 - options.label_smoothing;
  std::fill(out, out + options.classes, static_cast<float>(off));
  if (own == partner) {
    out[own] = static_cast<float>(on + off);
    return;
  }
  out[own] = static_cast<float>(on * lambda + off);
  out[partner] = static_cast<float>(on * (1 - lambda) + off);
}

}  // namespace vitrail::data
