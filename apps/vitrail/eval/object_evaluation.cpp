// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/eval/object_evaluation.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "apps/vitrail/output/output.h"
#include "apps/vitrail/output/text_width.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/image/decode.h"
#include "vitrail/image/draw.h"
#include "vitrail/image/resize_internal.h"
#include "vitrail/sam/outline_mask.h"
#include "vitrail/tasks/detect/detections.h"
#include "vitrail/train/report/html_internal.h"
#include "vitrail/train/run/run_folder_internal.h"

namespace vitrail::app {
namespace {

using analysis::CocoArea;
using analysis::CocoDetection;
using analysis::CocoMetrics;
using analysis::CocoTruth;
using Json = nlohmann::ordered_json;

constexpr double kShownScore = 0.5;  // detect's threshold: confusion and report are of what it shows
constexpr size_t kWorstImages = 12;
constexpr size_t kAt75 = 5;  // the position of the overlap 0.75
constexpr const char *kBoxes = "boxes", *kMasks = "masks", *kKeypoints = "keypoints";

double area_of(const std::array<double, 4>& box) { return (box[2] - box[0]) * (box[3] - box[1]); }

Json value_or_null(std::optional<double> value) { return value ? Json(*value) : Json(); }

std::string text_or_none(std::optional<double> value) { return value ? fmt::format("{:.4f}", *value) : "none"; }

std::vector<CocoTruth> truths_of(const std::vector<data::LabelledObject>& objects) {
  std::vector<CocoTruth> truths;
  for (const data::LabelledObject& object : objects)
    truths.push_back({object.index, object.area, object.crowd, object.difficult});
  return truths;
}

// COCO's 17 points have their own; those of other sets are alike.
std::vector<double> sigmas_of(size_t points) {
  const auto coco = analysis::coco_keypoint_sigmas();
  if (points == coco.size()) return {coco.begin(), coco.end()};
  return std::vector<double>(points, 1 / static_cast<double>(points));
}

// The smallest box around key points.
double area_of_points(const std::vector<double>& points) {
  std::array<double, 4> box{INFINITY, INFINITY, -INFINITY, -INFINITY};
  for (size_t i = 0; i + 2 < points.size(); i += 3) {
    box = {std::min(box[0], points[i]), std::min(box[1], points[i + 1]), std::max(box[2], points[i]),
           std::max(box[3], points[i + 1])};
  }
  return area_of(box);
}

Json metrics_json(const CocoMetrics& metrics, bool keypoints) {
  Json json{{"ap", value_or_null(metrics.average_precision())},
            {"ap50", value_or_null(metrics.average_precision(CocoArea::all, 0))},
            {"ap75", value_or_null(metrics.average_precision(CocoArea::all, kAt75))}};
  if (!keypoints) json["ap_small"] = value_or_null(metrics.average_precision(CocoArea::small));
  json["ap_medium"] = value_or_null(metrics.average_precision(CocoArea::medium));
  json["ap_large"] = value_or_null(metrics.average_precision(CocoArea::large));
  if (keypoints) {
    json["ar"] = value_or_null(metrics.average_recall());
    json["ar50"] = value_or_null(metrics.average_recall(CocoArea::all, {}, 0));
    json["ar75"] = value_or_null(metrics.average_recall(CocoArea::all, {}, kAt75));
  } else {
    json["ar1"] = value_or_null(metrics.average_recall(CocoArea::all, 0));
    json["ar10"] = value_or_null(metrics.average_recall(CocoArea::all, 1));
    json["ar100"] = value_or_null(metrics.average_recall(CocoArea::all, 2));
    json["ar_small"] = value_or_null(metrics.average_recall(CocoArea::small));
  }
  json["ar_medium"] = value_or_null(metrics.average_recall(CocoArea::medium));
  json["ar_large"] = value_or_null(metrics.average_recall(CocoArea::large));
  if (const auto best = metrics.best_score()) {
    json["best_f1"] = {
        {"score", best->score}, {"f1", best->f1}, {"precision", best->precision}, {"recall", best->recall}};
  }
  return json;
}

Json class_json(const CocoMetrics& metrics, int64_t category) {
  return {{"ap", value_or_null(metrics.average_precision(CocoArea::all, {}, category))},
          {"ap50", value_or_null(metrics.average_precision(CocoArea::all, 0, category))},
          {"ar", value_or_null(metrics.average_recall(CocoArea::all, {}, {}, category))}};
}

// A point for each 5 % of recall.
train::Curve recall_curve(const std::string& name, const std::vector<double>& precision) {
  train::Curve curve{.name = name, .x = {}, .y = {}};
  for (size_t i = 0; i < precision.size(); i += 5) {
    curve.x.push_back(static_cast<double>(i) / (CocoMetrics::kRecalls - 1));
    curve.y.push_back(precision[i]);
  }
  return curve;
}

std::vector<double> mean_curve(const CocoMetrics& metrics, size_t threshold) {
  std::vector<double> mean(CocoMetrics::kRecalls);
  double classes = 0;
  for (int64_t c = 0; c < metrics.categories(); ++c) {
    const std::vector<double> curve = metrics.precision_curve(c, threshold);
    for (size_t i = 0; i < curve.size(); ++i) mean[i] += curve[i];
    classes += curve.empty() ? 0 : 1;
  }
  for (double& value : mean) value /= std::max(1.0, classes);
  return mean;
}

// The mean at three overlaps; then those of the classes, as many in a chart as it has colours.
std::vector<train::Chart> recall_charts(const CocoMetrics& metrics, const std::vector<std::string>& names) {
  constexpr size_t kColors = 4, kMaxCharts = 10;
  train::Chart mean{
      .title = "Precision by recall: mean of the classes", .x_label = "recall", .percent = true, .curves = {}};
  for (const size_t threshold : {size_t{0}, kAt75, size_t{8}})
    mean.curves.push_back(
        recall_curve(fmt::format("overlap {:.2f}", CocoMetrics::threshold(threshold)), mean_curve(metrics, threshold)));
  std::vector<train::Chart> charts{mean};
  for (int64_t c = 0; c < metrics.categories(); ++c) {
    const std::vector<double> curve = metrics.precision_curve(c);
    if (curve.empty()) continue;
    if (charts.size() == 1 || charts.back().curves.size() == kColors) {
      if (charts.size() > kMaxCharts) break;
      charts.push_back(
          {.title = "Precision by recall at an overlap of 0.5", .x_label = "recall", .percent = true, .curves = {}});
    }
    charts.back().curves.push_back(recall_curve(names[static_cast<size_t>(c)], curve));
  }
  return charts;
}

}  // namespace

ObjectEvaluation::ObjectEvaluation(const data::ObjectSet& set, ObjectKinds kinds)
    : set_(set), kinds_(kinds), confusion_(std::ssize(set.class_names)) {
  const auto classes = std::ssize(set.class_names);
  if (kinds.boxes) metrics_.push_back({kBoxes, CocoMetrics(classes, {1, 10, 100})});
  if (kinds.masks) metrics_.push_back({kMasks, CocoMetrics(classes, {1, 10, 100})});
  if (!kinds.keypoints) return;
  metrics_.push_back({kKeypoints, CocoMetrics(classes, {20})});
  for (const data::LabelledImage& image : set.images) {
    for (const data::LabelledObject& object : image.objects) {
      if (sigmas_.empty() && !object.keypoints.empty()) sigmas_ = sigmas_of(object.keypoints.size());
    }
  }
  if (sigmas_.empty()) throw Error(set.where, "objects with key points", "none");
}

ObjectEvaluation::Kind& ObjectEvaluation::kind(const char* name) {
  return *std::ranges::find(metrics_, std::string_view(name), &Kind::name);
}

void ObjectEvaluation::add(size_t image, int64_t width, int64_t height, const std::vector<FoundObject>& found) {
  const std::vector<data::LabelledObject> truth = objects_of(set_, image, width, height);
  if (kinds_.boxes) add_boxes(image, truth, found);
  if (kinds_.masks) add_masks(image, width, height, truth, found);
  if (kinds_.keypoints) add_keypoints(image, truth, found);
  ++images_;
  objects_ += std::ssize(truth);
}

void ObjectEvaluation::add_boxes(size_t image, const std::vector<data::LabelledObject>& truth,
                                 const std::vector<FoundObject>& found) {
  const std::vector<CocoTruth> truths = truths_of(truth);
  std::vector<CocoDetection> detections;
  for (const FoundObject& each : found) detections.push_back({each.category, each.score, area_of(each.box)});
  kind(kBoxes).metrics.add(set_.images[image].id, truths, detections, [&](size_t d, size_t t) {
    return analysis::box_overlap(found[d].box, truth[t].box, truth[t].crowd);
  });
  WorstImage shown{.image = image, .truth = truth};
  std::ranges::copy_if(found, std::back_inserter(shown.found),
                       [](const FoundObject& each) { return each.score > kShownScore; });
  detections.clear();
  for (const FoundObject& each : shown.found) detections.push_back({each.category, each.score});
  shown.errors = confusion_.add(truths, detections, [&](size_t d, size_t t) {
    return analysis::box_overlap(shown.found[d].box, truth[t].box, truth[t].crowd);
  });
  keep_if_worst(std::move(shown));
}

void ObjectEvaluation::keep_if_worst(WorstImage image) {
  if (image.errors.count() == 0) return;
  const auto at = std::ranges::upper_bound(worst_, image.errors.count(), std::greater{},
                                           [](const WorstImage& each) { return each.errors.count(); });
  worst_.insert(at, std::move(image));
  if (worst_.size() > kWorstImages) worst_.pop_back();
}

void ObjectEvaluation::add_masks(size_t image, int64_t width, int64_t height,
                                 const std::vector<data::LabelledObject>& truth,
                                 const std::vector<FoundObject>& found) {
  std::vector<sam::ComparedMask> true_masks, masks;
  for (const data::LabelledObject& object : truth) {
    const std::string where = str(set_.where, ": annotation ", object.id, ": segmentation");
    if (object.outline.empty()) throw Error(where, "polygons or runs, to compare masks", "none");
    true_masks.emplace_back(sam::outline_mask(object.outline, width, height, where));
  }
  std::vector<CocoDetection> detections;
  for (const FoundObject& each : found) {
    masks.emplace_back(each.mask.value());
    detections.push_back({each.category, each.score, static_cast<double>(masks.back().area())});
  }
  kind(kMasks).metrics.add(set_.images[image].id, truths_of(truth), detections,
                           [&](size_t d, size_t t) { return masks[d].overlap(true_masks[t], truth[t].crowd); });
}

void ObjectEvaluation::add_keypoints(size_t image, const std::vector<data::LabelledObject>& truth,
                                     const std::vector<FoundObject>& found) {
  std::vector<CocoTruth> truths = truths_of(truth);
  std::vector<std::vector<double>> points;
  for (size_t i = 0; i < truth.size(); ++i) {
    std::vector<double>& of_object = points.emplace_back();
    for (const data::KeyPoint& point : truth[i].keypoints)
      of_object.insert(of_object.end(), {point.x, point.y, static_cast<double>(point.visibility)});
    of_object.resize(3 * sigmas_.size());  // an object without points has none that is labelled
    truths[i].ignored |=
        std::ranges::none_of(truth[i].keypoints, [](const auto& point) { return point.visibility > 0; });
  }
  std::vector<CocoDetection> detections;
  for (const FoundObject& each : found)
    detections.push_back({each.category, each.score, area_of_points(each.keypoints)});
  kind(kKeypoints).metrics.add(set_.images[image].id, truths, detections, [&](size_t d, size_t t) {
    return analysis::keypoint_similarity(found[d].keypoints, {points[t], truth[t].box, truth[t].area}, sigmas_);
  });
}

std::string ObjectEvaluation::name_of(size_t category) const {
  return category < set_.class_names.size() ? set_.class_names[category] : "(nothing)";
}

Json ObjectEvaluation::json() const {
  Json report{{"images", images_}, {"objects", objects_}};
  for (const Kind& kind : metrics_) report[kind.name] = metrics_json(kind.metrics, kind.name == kKeypoints);
  Json& classes = report["classes"] = Json::array();
  for (int64_t c = 0; c < std::ssize(set_.class_names); ++c) {
    Json& row = classes.emplace_back(Json{{"label", name_of(static_cast<size_t>(c))}});
    row["objects"] = metrics_.front().metrics.truths(c);
    for (const Kind& kind : metrics_) row[kind.name] = class_json(kind.metrics, c);
  }
  if (!kinds_.boxes) return report;
  Json& confusion = report["confusion"] = Json::array();  // label, detection, objects; the number of classes is none
  for (size_t label = 0; label < confusion_.counts().size(); ++label) {
    for (size_t detection = 0; detection < confusion_.counts().size(); ++detection) {
      if (const int64_t count = confusion_.counts()[label][detection]; count > 0)
        confusion.push_back({label, detection, count});
    }
  }
  return report;
}

void ObjectEvaluation::print() const {
  print_output("{} of {}\n", counted(objects_, "object"), counted(images_, "image"));
  for (const Kind& kind : metrics_) {
    const Json values = metrics_json(kind.metrics, kind.name == kKeypoints);
    std::string line;
    for (const auto& [name, value] : values.items()) {
      if (value.is_object()) continue;
      if (name.starts_with("ar") && line.find("  ar") == line.npos) line += "\n         ";
      line += fmt::format("  {} {}", name, value.is_null() ? "none" : fmt::format("{:.4f}", value.get<double>()));
    }
    print_output("{:9}{}\n", kind.name, line);
    if (const auto best = kind.metrics.best_score()) {
      print_output("           best F1 {:.4f} above the score {:.3f}: precision {:.4f}, recall {:.4f}\n", best->f1,
                   best->score, best->precision, best->recall);
    }
  }
  size_t width = std::string("class").size();
  for (size_t c = 0; c < set_.class_names.size(); ++c) width = std::max(width, width_of(escaped(name_of(c))));
  for (const Kind& kind : metrics_) {
    print_output("\n{}  {:>7}  {:>6}  {:>6}  {:>6}\n", padded(std::string("class (") + kind.name + ")", width),
                 "objects", "AP", "AP50", "AR");
    for (int64_t c = 0; c < std::ssize(set_.class_names); ++c) {
      const CocoMetrics& metrics = kind.metrics;
      print_output("{}  {:>7}  {:>6}  {:>6}  {:>6}\n", padded(escaped(name_of(static_cast<size_t>(c))), width),
                   metrics.truths(c), text_or_none(metrics.average_precision(CocoArea::all, {}, c)),
                   text_or_none(metrics.average_precision(CocoArea::all, 0, c)),
                   text_or_none(metrics.average_recall(CocoArea::all, {}, {}, c)));
    }
  }
}

namespace {

// The true boxes in green; over them the detections with their classes and scores.
image::Image worst_image(const std::string& path, const std::vector<data::LabelledObject>& truth,
                         const std::vector<FoundObject>& found, const std::vector<std::string>& names) {
  constexpr int64_t kMaxSide = 480;
  image::Image photo = image::read_image(path);
  const double scale =
      std::min(1.0, static_cast<double>(kMaxSide) / static_cast<double>(std::max(photo.width, photo.height)));
  const auto scaled = [&](double length) { return std::max<int64_t>(1, std::lround(length * scale)); };
  if (scale < 1) {
    photo = image::resize(photo, scaled(static_cast<double>(photo.width)), scaled(static_cast<double>(photo.height)),
                          image::Filter::bilinear);
  }
  for (const data::LabelledObject& object : truth) {
    const auto& box = object.box;
    image::draw_rectangle({std::lround(box[0] * scale), std::lround(box[1] * scale), std::lround(box[2] * scale),
                           std::lround(box[3] * scale)},
                          2, {0, 200, 0}, photo);
  }
  tasks::Detections shown;
  for (const FoundObject& each : found) {
    tasks::Detection& detection = shown.emplace_back();
    detection.label = names[static_cast<size_t>(each.category)];
    detection.index = each.category;
    detection.score = static_cast<float>(each.score);
    for (size_t i = 0; i < 4; ++i) detection.box[i] = static_cast<float>(each.box[i] * scale);
  }
  return tasks::detections_overlay(photo, shown);
}

}  // namespace

void ObjectEvaluation::write_report(const std::string& file, const std::string& subtitle,
                                    const std::string& command_line) const {
  const CocoMetrics& metrics = metrics_.front().metrics;
  train::Report report;
  report.title = "Evaluation";
  report.subtitle = subtitle;
  const auto fact = [&](const char* name, std::optional<double> value) {
    report.facts.emplace_back(name, value ? train::percent(*value, 2) : "none");
  };
  fact("AP, mean over the overlaps 0.50 to 0.95", metrics.average_precision());
  fact("AP50", metrics.average_precision(CocoArea::all, 0));
  fact("AP75", metrics.average_precision(CocoArea::all, kAt75));
  fact("AR100", metrics.average_recall());
  if (const auto best = metrics.best_score())
    report.facts.emplace_back(fmt::format("best F1, above the score {:.3f}", best->score), train::percent(best->f1, 2));
  report.facts.emplace_back("objects", train::with_thousands_separators(objects_));
  report.charts = recall_charts(metrics, set_.class_names);
  report.shows_average_precision = true;
  const auto& counts = confusion_.counts();
  for (size_t c = 0; c < set_.class_names.size(); ++c) {
    int64_t support = 0, predicted = 0;
    for (size_t other = 0; other < counts.size(); ++other) {
      support += counts[c][other];
      predicted += counts[other][c];
    }
    report.class_rows.push_back(
        {.name = name_of(c),
         .training_images = 0,
         .metrics = data::class_metrics(counts[c][c], support, predicted),
         .average_precision = metrics.average_precision(CocoArea::all, {}, static_cast<int64_t>(c))});
  }
  for (size_t c = 0; c < counts.size(); ++c) report.classes.push_back(name_of(c));
  report.confusion = counts;
  report.confusion_of =
      fmt::format("{} and detections with a score above {}", counted(objects_, "object"), kShownScore);
  train::Gallery worst{"Worst images: true boxes in green, detections with class and score", {}};
  for (const WorstImage& each : worst_)
    worst.images.push_back(worst_image(set_.images[each.image].path, each.truth, each.found, set_.class_names));
  report.galleries.push_back(std::move(worst));
  report.environment = {{"command", command_line}, {"version", "vitrail " VITRAIL_VERSION}};
  train::write_text(file, train::render_report(report));
}

}  // namespace vitrail::app
