// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/scores.h"

#include <algorithm>
#include <cstdio>

#include "vitrail/base/error.h"
#include "vitrail/data/metrics/metrics.h"

namespace vitrail::train {
namespace {

std::string four_digits(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.4f", value);
  return text;
}

std::string short_text(const Score& score) {
  if (score.unit != ScoreUnit::share) return four_digits(score.value);
  const data::Interval interval = data::wilson_interval(score.value, score.images);
  char text[128];
  std::snprintf(text, sizeof text, "%5.2f %% (%.1f to %.1f of %lld)", 100 * score.value, 100 * interval.low,
                100 * interval.high, static_cast<long long>(score.images));
  return text;
}

void replace(std::string& text, const std::string& mark, const std::string& value) {
  if (const size_t at = text.find(mark); at != text.npos) text.replace(at, mark.size(), value);
}

}  // namespace

std::string line_of(const std::string& pattern, const Evaluation& evaluation) {
  std::string line = pattern;
  for (size_t i = 0; i < evaluation.scores.size(); ++i)
    replace(line, str("{", i, "}"), short_text(evaluation.scores[i]));
  replace(line, "{n}", str(evaluation.images));
  return line;
}

std::string text_of(const Score& score) {
  const bool is_share = score.unit == ScoreUnit::share;
  std::string text = score.phrase;
  replace(text, "{}", is_share ? data::accuracy_text(score.value, score.images) : four_digits(score.value));
  return is_share ? text : str(text, " on ", score.images, " images");
}

std::vector<Score> scores_of(const std::vector<Metric>& metrics, const std::vector<double>& values, int64_t images) {
  std::vector<Score> scores;
  for (size_t i = 0; i < std::min(metrics.size(), values.size()); ++i)
    scores.push_back({metrics[i], values[i], images});
  return scores;
}

}  // namespace vitrail::train
