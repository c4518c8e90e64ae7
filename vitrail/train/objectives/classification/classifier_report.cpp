// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/classification/classifier_report_internal.h"

#include "vitrail/train/objectives/classification/class_weights_internal.h"

namespace vitrail::train {
namespace {

std::vector<MisclassifiedImage> misclassified_images(const std::vector<std::string>& classes,
                                                     const ClassEvaluation& evaluation, const Subset& subset) {
  std::vector<MisclassifiedImage> images;
  const data::Dataset* dataset = subset.dataset.get();
  if (!dataset) return images;
  for (const Misclassification& m : evaluation.worst) {
    images.push_back({dataset->path(m.sample), classes[static_cast<size_t>(m.label)],
                      classes[static_cast<size_t>(m.prediction)], m.prediction_probability, m.label_probability,
                      make_thumbnail(dataset->image(m.sample))});
  }
  return images;
}

std::vector<ClassRow> class_rows(const RunData& data, const ClassEvaluation& evaluation) {
  const auto& confusion = evaluation.confusion;
  if (evaluation.images == 0) return {};
  const std::vector<int64_t> training = class_counts(data.train, data.classes.size());
  std::vector<ClassRow> rows;
  if (const auto& labels = evaluation.labels) {
    for (int64_t c = 0; c < labels->class_count(); ++c) {
      const auto i = static_cast<size_t>(c);
      rows.push_back({data.classes[i], training[i], labels->of_class(c), labels->average_precision_of(c)});
    }
  }
  for (size_t c = 0; c < confusion.size(); ++c) {
    int64_t support = 0, predicted = 0;
    for (size_t other = 0; other < confusion.size(); ++other) {
      support += confusion[c][other];
      predicted += confusion[other][c];
    }
    rows.push_back({data.classes[c], training[c], data::class_metrics(confusion[c][c], support, predicted)});
  }
  return rows;
}

}  // namespace

void add_classes(const RunData& data, const ClassEvaluation& evaluation, const Subset& subset,
                 const std::vector<Gallery>& galleries, Report& report) {
  report.galleries.insert(report.galleries.end(), galleries.begin(), galleries.end());
  report.class_rows = class_rows(data, evaluation);
  report.shows_average_precision = data.multi_label;
  report.classes = data.classes;
  if (evaluation.images > 0) report.confusion = evaluation.confusion;
  report.confusion_of = subset.name;
  report.misclassified = misclassified_images(data.classes, evaluation, subset);
}

}  // namespace vitrail::train
