// SPDX-License-Identifier: Apache-2.0
#pragma once
// The scores by which an objective tells how well a model does.
#include <cstdint>
#include <string>
#include <vector>

namespace vitrail::train {

// How messages and reports show a score.
enum class ScoreUnit {
  share,     // a share of images: in percent, with its confidence interval
  percent,   // in percent
  fraction,  // with three digits
};

// What a score measures.
struct Metric {
  std::string name{};    // in files: "top1"
  std::string title{};   // in reports: "top-1"
  std::string phrase{};  // in messages, {} for the value: "top-1 {}"
  ScoreUnit unit = ScoreUnit::fraction;
  std::string chart{};  // title of its curve in the report: "Top-1 accuracy"; none: no curve
  std::string note{};   // below the curve: how it should change
};

// From 0 to 1, higher is better.
struct Score : Metric {
  double value = 0;
  int64_t images = 0;  // that it was measured on
};

// The loss and the scores of weights on some images.
struct Evaluation {
  double loss = 0;
  int64_t images = 0;
  std::vector<Score> scores{};
};

// The metrics of an objective.  The first one decides between weights of the same loss, and is the one that messages
// name.
struct Metrics {
  std::vector<Metric> each{};
  // The end of an epoch's line, for the weights and for the averaged weights.  {0}, {1}: scores; {n}: images
  std::string line{}, average_line{};
  bool in_training = false;      // whether training counts correct images; the first score is their share
  size_t in_report = 2;          // how many of them are facts of the report
  bool loss_in_summary = false;  // loss of the validation images
  bool validates_loss = true;    // false: an Evaluation's loss is made from its scores, and no loss of the training
  std::string loss_note{};       // below the curve of the loss: how it should change
};

// Metrics::line with its values: "95.00 % (86.3 to 98.3 of 60)" for a share, else "0.8123".
std::string line_of(const std::string& pattern, const Evaluation& evaluation);

// "top-1 95.00 % of 60 images (95 % interval 86.3 to 98.3 %)" or "mean average precision 0.8123 on 60 images"
std::string text_of(const Score& score);

// The scores of these values, in the order of the metrics; of fewer values only the first ones.
std::vector<Score> scores_of(const std::vector<Metric>& metrics, const std::vector<double>& values, int64_t images);

}  // namespace vitrail::train
