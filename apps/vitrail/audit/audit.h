// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `vitrail audit` knows of a labelled set, and what it finds in it.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/image/image.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::app {

// Luminance (Rec. 601) of an image, from 0 to 1.
struct Luminance {
  double low = 0, high = 0;  // the 1st and the 99th percentile
  double deviation = 0;      // the standard deviation
};
Luminance luminance_of(const image::Image& image);

struct AuditedImage {
  std::string path, split;
  int64_t label = -1;             // −1: none
  std::string error = {};         // why it could not be read; empty: it was
  int64_t width = 0, height = 0;  // as decoded
  Luminance luminance = {};
  std::function<uint64_t()> content = {};   // a hash of the file's bytes; not set: unknown
  std::function<image::Image()> read = {};  // reads the image again
  // What the features tell.
  std::optional<double> self_confidence = {};  // the held-out probability of its label
  int64_t predicted = -1;                      // the most probable class of a classifier that was not fitted to it
  double predicted_probability = 0;
  double neighbor_distance = 0;  // analysis::NeighborDistance::mean
};

// The kinds of findings, in the order of the report.
enum class FindingKind { unreadable, odd, duplicates, leak, label, outlier, classes, next };

struct FindingText {
  const char* name;   // in JSON and CSV: "label"
  const char* title;  // "Probable label errors"
  const char* help;   // one line
};
const FindingText& text_of(FindingKind kind);

struct Finding {
  FindingKind kind;
  std::vector<size_t> images;         // in Audit::images
  std::string text;                   // "labelled cat, looks like dog"
  std::optional<double> score = {};   // by which the findings of a kind are ordered
  std::vector<int64_t> classes = {};  // those that it is about
};

struct Audit {
  std::vector<AuditedImage> images;  // those of all splits, then the unlabelled ones
  std::vector<std::string> classes;
  std::vector<Finding> findings;  // by kind, the most important of a kind first
  Tensor features = {};           // f32 [readable images, D]
  std::vector<size_t> rows = {};  // the image of each row of features
  int64_t folds = 0;              // how many the cross-validation has; 0: a class has a single image
  double held_out_top1 = 0;

  const std::string& class_name(int64_t label) const { return classes.at(static_cast<size_t>(label)); }
};

struct AuditSettings {
  double duplicates = 0.9;  // the cosine similarity of near-identical images
  int64_t next = 20;        // how many unlabelled images to name
};

// Fills in the findings, and what the features tell of each image.
void find_all(Audit& audit, const AuditSettings& settings);

}  // namespace vitrail::app
