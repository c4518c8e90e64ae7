// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/audit/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "apps/vitrail/audit/near_duplicates.h"
#include "vitrail/analysis/confident_learning.h"
#include "vitrail/analysis/knn.h"
#include "vitrail/analysis/outliers.h"
#include "vitrail/analysis/strength_search.h"
#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"

namespace vitrail::app {
namespace {

constexpr double kConfused = 0.15;      // the share of two classes' images that are taken for the other class
constexpr int64_t kConfusedImages = 3;  // at least so many are

// The labelled images that could be read.
struct Labelled {
  std::vector<size_t> images;
  Tensor features;  // [n, D]
  std::vector<int64_t> labels;
};

Labelled labelled_of(const Audit& audit) {
  std::vector<int64_t> rows;
  Labelled labelled;
  for (size_t row = 0; row < audit.rows.size(); ++row) {
    const size_t image = audit.rows[row];
    if (audit.images[image].label < 0) continue;
    rows.push_back(static_cast<int64_t>(row));
    labelled.images.push_back(image);
    labelled.labels.push_back(audit.images[image].label);
  }
  labelled.features = Tensor::empty({std::ssize(rows), audit.features.size(1)});
  for (size_t i = 0; i < rows.size(); ++i)
    labelled.features.select(0, static_cast<int64_t>(i)).copy_(audit.features.select(0, rows[i]));
  return labelled;
}

// In place: softmax of each row of f64 [n, classes].
void softmax_rows(Tensor& logits) {
  const int64_t classes = logits.size(1);
  for (int64_t i = 0; i < logits.size(0); ++i) {
    double* const row = logits.data<double>() + i * classes;
    const double largest = *std::max_element(row, row + classes);
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) sum += row[c] = std::exp(row[c] - largest);
    for (int64_t c = 0; c < classes; ++c) row[c] /= sum;
  }
}

// Pairs of classes whose images are often taken for those of the other.
void find_confused_classes(Audit& audit, const Labelled& labelled) {
  const size_t count = audit.classes.size();
  std::vector<int64_t> totals(count);
  std::vector<std::vector<size_t>> confused(count * count);  // [label][predicted]: images
  for (const size_t i : labelled.images) {
    const AuditedImage& image = audit.images[i];
    ++totals[static_cast<size_t>(image.label)];
    if (image.label != image.predicted)
      confused[static_cast<size_t>(image.label) * count + static_cast<size_t>(image.predicted)].push_back(i);
  }
  std::vector<Finding> findings;
  for (size_t a = 0; a < count; ++a) {
    for (size_t b = a + 1; b < count; ++b) {
      std::vector<size_t> images = confused[a * count + b];
      images.insert(images.end(), confused[b * count + a].begin(), confused[b * count + a].end());
      const double share =
          static_cast<double>(images.size()) / static_cast<double>(std::max<int64_t>(1, totals[a] + totals[b]));
      if (std::ssize(images) < kConfusedImages || share < kConfused) continue;
      findings.push_back({FindingKind::classes,
                          images,
                          fmt::format("{} and {}: {} of {} images are taken for the other class", audit.classes[a],
                                      audit.classes[b], images.size(), totals[a] + totals[b]),
                          share,
                          {static_cast<int64_t>(a), static_cast<int64_t>(b)}});
    }
  }
  std::ranges::stable_sort(findings, std::greater{}, &Finding::score);
  audit.findings.insert(audit.findings.end(), findings.begin(), findings.end());
}

void set_predictions(Audit& audit, const Labelled& labelled, const Tensor& probabilities,
                     const analysis::LabelQuality& quality) {
  for (size_t i = 0; i < labelled.images.size(); ++i) {
    AuditedImage& image = audit.images[labelled.images[i]];
    image.self_confidence = quality.self_confidence[i];
    image.predicted = quality.predicted[i];
    image.predicted_probability =
        probabilities.data<double>()[static_cast<int64_t>(i) * probabilities.size(1) + image.predicted];
    audit.held_out_top1 += image.predicted == image.label ? 1.0 / static_cast<double>(labelled.images.size()) : 0;
  }
}

void find_unreadable(Audit& audit) {
  for (size_t i = 0; i < audit.images.size(); ++i) {
    if (!audit.images[i].error.empty()) audit.findings.push_back({FindingKind::unreadable, {i}, audit.images[i].error});
  }
}

void find_duplicates(Audit& audit, double threshold) {
  analysis::DisjointSets sets(audit.rows.size());
  const Tensor unit = analysis::normalized_rows(audit.features);
  join_similar(unit, threshold, sets);
  std::vector<Finding> leaks;
  for (const std::vector<size_t>& rows : sets.several()) {
    Finding finding{FindingKind::duplicates, {}, {}};
    std::set<std::string> splits;
    std::set<int64_t> labels;
    double lowest = 1;
    bool identical = true;
    for (const size_t row : rows) {
      const AuditedImage& image = audit.images[audit.rows[row]];
      const AuditedImage& first = audit.images[audit.rows[rows.front()]];
      finding.images.push_back(audit.rows[row]);
      splits.insert(image.split);
      if (image.label >= 0) labels.insert(image.label);
      lowest = std::min(lowest, cosine(unit, rows.front(), row));
      identical = identical && image.content && first.content && image.content() == first.content();
    }
    finding.score = lowest;
    finding.text = identical ? "identical files" : fmt::format("similarity {:.3f}", lowest);
    finding.classes.assign(labels.begin(), labels.end());
    if (labels.size() > 1)
      finding.text += ", with different labels: " + join(labels, ", ", [&](int64_t c) { return audit.class_name(c); });
    if (splits.size() > 1) {
      leaks.push_back(finding);
      leaks.back().kind = FindingKind::leak;
      leaks.back().text += ", in " + join(splits, " and ");
    }
    audit.findings.push_back(std::move(finding));
  }
  audit.findings.insert(audit.findings.end(), leaks.begin(), leaks.end());
}

void find_label_errors(Audit& audit, const Labelled& labelled, const analysis::StrengthSearch& search) {
  const auto classes = std::ssize(audit.classes);
  audit.folds = search.folds;
  if (search.folds == 0) {
    warn("labels are not checked: a class has a single readable image, so that there is no cross-validation");
    return;
  }
  Tensor probabilities = analysis::held_out_logits(search, labelled.features, labelled.labels, classes);
  softmax_rows(probabilities);
  const analysis::LabelQuality quality = analysis::label_quality(probabilities, labelled.labels);
  set_predictions(audit, labelled, probabilities, quality);
  for (const int64_t i : quality.errors) {
    const size_t index = labelled.images[static_cast<size_t>(i)];
    const AuditedImage& image = audit.images[index];
    audit.findings.push_back({FindingKind::label,
                              {index},
                              fmt::format("labelled {}, looks like {} ({:.0f} %)", audit.class_name(image.label),
                                          audit.class_name(image.predicted), 100 * image.predicted_probability),
                              image.self_confidence,
                              {image.label, image.predicted}});
  }
  find_confused_classes(audit, labelled);
}

void find_outliers(Audit& audit) {
  const auto distances = analysis::neighbor_distances(analysis::normalized_rows(audit.features));
  std::vector<double> values;
  for (size_t row = 0; row < distances.size(); ++row) {
    audit.images[audit.rows[row]].neighbor_distance = distances[row].mean;
    values.push_back(distances[row].mean);
  }
  const double fence = analysis::outer_fence(values);
  std::vector<Finding> findings;
  for (size_t row = 0; row < distances.size(); ++row) {
    if (values[row] <= fence) continue;
    const size_t nearest = audit.rows[static_cast<size_t>(distances[row].nearest)];
    findings.push_back({FindingKind::outlier,
                        {audit.rows[row]},
                        fmt::format("distance {:.3f}, nearest image {}", values[row], audit.images[nearest].path),
                        values[row]});
  }
  std::ranges::stable_sort(findings, std::greater{}, &Finding::score);
  audit.findings.insert(audit.findings.end(), findings.begin(), findings.end());
}

// Margin sampling (Scheffer, Decomain & Wrobel 2001): the images whose two most probable classes are nearest to each
// other.  An image that is near-identical to one that has a label, or is named already, would tell nothing more.
void find_next_to_label(Audit& audit, const AuditSettings& settings, const Labelled& labelled, double strength) {
  if (labelled.images.size() == audit.rows.size()) return;
  const auto classes = std::ssize(audit.classes);
  Tensor probabilities = analysis::logits(
      analysis::fit_logistic_regression(labelled.features, labelled.labels, classes, {.c = strength}), audit.features);
  softmax_rows(probabilities);
  struct Candidate {
    size_t row;
    int64_t first, second;
    double first_probability, second_probability;
    double margin() const { return first_probability - second_probability; }
  };
  std::vector<Candidate> candidates;
  std::vector<size_t> known;  // rows
  for (size_t row = 0; row < audit.rows.size(); ++row) {
    AuditedImage& image = audit.images[audit.rows[row]];
    if (image.label >= 0) {
      known.push_back(row);
      continue;
    }
    const double* const p = probabilities.data<double>() + static_cast<int64_t>(row) * classes;
    const int64_t first = std::max_element(p, p + classes) - p;
    int64_t second = first == 0 ? 1 : 0;
    for (int64_t c = 0; c < classes; ++c) {
      if (c != first && p[c] > p[second]) second = c;
    }
    image.predicted = first, image.predicted_probability = p[first];
    candidates.push_back({row, first, second, p[first], p[second]});
  }
  std::ranges::stable_sort(candidates, {}, &Candidate::margin);
  const Tensor unit = analysis::normalized_rows(audit.features);
  int64_t count = 0;
  for (const Candidate& candidate : candidates) {
    if (count == settings.next) break;
    const auto is_near = [&](size_t row) { return cosine(unit, row, candidate.row) >= settings.duplicates; };
    if (std::ranges::any_of(known, is_near)) continue;
    known.push_back(candidate.row);
    ++count;
    audit.findings.push_back(
        {FindingKind::next,
         {audit.rows[candidate.row]},
         fmt::format("{} {:.0f} %, {} {:.0f} %", audit.class_name(candidate.first), 100 * candidate.first_probability,
                     audit.class_name(candidate.second), 100 * candidate.second_probability),
         candidate.margin(),
         {candidate.first, candidate.second}});
  }
}

}  // namespace

void find_all(Audit& audit, const AuditSettings& settings) {
  find_unreadable(audit);
  find_odd(audit);
  if (audit.rows.empty()) return;
  find_duplicates(audit, settings.duplicates);
  const Labelled labelled = labelled_of(audit);
  const analysis::StrengthSearch search =
      analysis::search_strength(labelled.features, labelled.labels, std::ssize(audit.classes));
  find_label_errors(audit, labelled, search);
  find_outliers(audit);
  find_next_to_label(audit, settings, labelled, search.best);
  std::ranges::stable_sort(audit.findings, {}, &Finding::kind);
}

const FindingText& text_of(FindingKind kind) {
  static const FindingText texts[] = {
      {"unreadable", "Unreadable images", "They are left out of everything else."},
      {"odd", "Odd images", "Of one colour, very dark or bright, or far from the usual size and aspect ratio."},
      {"duplicates", "Near-identical images", "Groups by the cosine similarity of features."},
      {"leak", "Leaks between splits", "Near-identical images on both sides, which make results look better."},
      {"label", "Probable label errors",
       "Confident learning on cross-validated probabilities; the least probable label is first."},
      {"outlier", "Outliers", "Images unlike all others, by the distance of their features to the nearest ones."},
      {"classes", "Classes that cannot be told apart", "Many of their images are taken for the other class."},
      {"next", "Images to label next",
       "The unlabelled images that a classifier of the labelled ones is least sure of."}};
  return texts[static_cast<size_t>(kind)];
}

}  // namespace vitrail::app
