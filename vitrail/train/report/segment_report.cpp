// SPDX-License-Identifier: Apache-2.0
// report.html, summary.json and the model card of a run with the objective "segment".
#include <cstdio>
#include <nlohmann/json.hpp>

#include "vitrail/base/error.h"
#include "vitrail/image/decode.h"
#include "vitrail/sam/mask_overlay.h"
#include "vitrail/train/objectives/segment_run_internal.h"
#include "vitrail/train/report/html_internal.h"
#include "vitrail/train/report/report_images_internal.h"
#include "vitrail/train/run/unreadable_images_internal.h"

namespace vitrail::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kOverlayImages = 6;  // each with its objects and with the predicted masks
constexpr size_t kOverlayMasks = 12;   // per image

std::string fraction_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", value);
  return text;
}

std::vector<std::pair<std::string, std::string>> facts_of(const Counters& counters, const SegmentData& data,
                                                          int64_t parameters) {
  const MetricNames names = segmentation_metric_names();
  std::vector<std::pair<std::string, std::string>> facts;
  if (counters.tested && data.test) {
    facts.push_back({str(names.first_title, " on the test images"), fraction_text(counters.test_top1)});
    facts.push_back({str(names.second_title, " on the test images"), fraction_text(counters.test_top5)});
  }
  if (counters.best.top1 >= 0 && data.validation) {
    facts.push_back({str("best validation ", names.first_title, ", epoch ", counters.best_epoch,
                         counters.best_is_average ? ", EMA weights" : ""),
                     fraction_text(counters.best.top1)});
  }
  facts.push_back({"epochs", str(counters.history.size())});
  facts.push_back({"training time", duration_text(counters.seconds)});
  facts.push_back({"parameters", with_thousands_separators(parameters)});
  facts.push_back({"training images", with_thousands_separators(static_cast<int64_t>(data.samples.size()))});
  if (counters.skipped_images > 0) {
    facts.push_back({"unreadable images skipped", with_thousands_separators(counters.skipped_images)});
  }
  return facts;
}

Json summary_of(const Counters& counters, const SegmentData& data, int64_t parameters, bool finished) {
  const MetricNames names = segmentation_metric_names();
  Json json{{"finished", finished},
            {"epochs", counters.history.size()},
            {"parameters", parameters},
            {"training_images", data.samples.size()},
            {"seconds", counters.seconds},
            {"skipped_images", counters.skipped_images},
            {"skipped_steps", counters.skipped_steps}};
  if (data.validation) {
    json["held_out"] = {{"images", validated_images(counters, data.validation->size())},
                        {names.first, std::max(0.0, counters.best.top1)},
                        {"loss", counters.best.loss},
                        {"epoch", counters.best_epoch},
                        {"averaged_weights", counters.best_is_average}};
  }
  if (counters.tested && data.test) {
    json["test"] = {{"images", tested_images(counters, data.test->size())},
                    {names.first, counters.test_top1},
                    {names.second, counters.test_top5},
                    {"loss", counters.test_loss}};
  }
  return json;
}

std::string card_of(const Recipe& recipe, const Counters& counters, const SegmentData& data) {
  const std::string& init = recipe.model.init;
  std::string results;
  for (const auto& [name, value] : facts_of(counters, data, 0)) {
    if (name.find("mean IoU") != name.npos) results += str("- ", name, ": ", value, "\n");
  }
  return str(
      "---\nlibrary_name: vitrail\npipeline_tag: mask-generation\ntags: [segment-anything]\n---\n",
      "# Segment Anything\n\n", init.empty() ? "Trained from scratch" : "Trained from `" + init + "`", " on ",
      data.samples.size(), " images with masks of `", recipe.data.train, "`.\n\n",
      "```sh\nvitrail segment -m FOLDER IMAGE --point X,Y -o masks    # FOLDER: the folder of this file\n```\n\n",
      "## Results\n\n", results.empty() ? "No images were held out.\n" : results,
      "\nThe run's `recipe.json` has all settings, `report.html` the curves and masks.\n");
}

// The preferred mask of a click in the middle of each object.
std::vector<sam::Rle> predicted_masks(const sam::Predictor& predictor, const image::Image& image,
                                      const std::vector<sam::Rle>& objects) {
  const sam::ImageEmbedding embedding = predictor.embed(image);
  std::vector<sam::Rle> masks;
  for (const sam::Rle& object : objects) {
    const sam::Masks three = predictor.predict(embedding, {.points = {sam::middle_of(sam::decode(object))}});
    const auto best = std::max_element(three.iou.begin(), three.iou.end()) - three.iou.begin();
    masks.push_back(
        sam::encode(sam::threshold(predictor.image_logits(three.logits.select(0, best), image.width, image.height))));
  }
  return masks;
}

}  // namespace

std::vector<image::Image> SegmentRun::overlays() const {
  std::vector<image::Image> images;
  const sam::InstanceDataset* const dataset = data_.test ? data_.test.get() : data_.validation.get();
  if (dataset == nullptr) return images;
  const sam::Predictor model = predictor();
  const int64_t count = std::min(kOverlayImages, dataset->size());
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = i * dataset->size() / count;
    try {
      const image::Image image = image::read_image(dataset->path(index), {.apply_exif = recipe_.data.exif});
      std::vector<sam::Rle> objects = dataset->masks(index, image.width, image.height);
      objects.resize(std::min(objects.size(), kOverlayMasks));
      images.push_back(make_thumbnail(sam::mask_overlay(image, objects)));
      images.push_back(make_thumbnail(sam::mask_overlay(image, predicted_masks(model, image, objects))));
    } catch (const Error&) {  // the evaluation reports it
    }
  }
  return images;
}

void SegmentRun::update_report(bool finished) {
  const Counters counters = current_counters();
  const int64_t parameters = prepared_.model.num_parameters();
  Report report;
  const std::filesystem::path& folder = folder_.path();
  const std::filesystem::path name = folder.filename().empty() ? folder.parent_path().filename() : folder.filename();
  report.title = name.string().empty() || name == "." ? "Training run" : name.string();
  report.subtitle = str("Segment Anything on ", recipe_.data.train, finished ? "" : " — still running");
  report.facts = facts_of(counters, data_, parameters);
  report.charts = metric_charts(folder / "metrics.csv", "Mean IoU for one click", false);
  remove_empty(report.charts);
  report.overlays = overlays();
  report.recipe = write_recipe(recipe_);
  report.environment = environment_;
  write_text(folder / "report.html", render_report(report));
  write_text(folder / "summary.json", summary_of(counters, data_, parameters, finished).dump(2) + "\n");
  std::error_code error;
  if (std::filesystem::is_directory(folder / "model", error)) {
    write_text(folder / "model/README.md", card_of(recipe_, counters, data_));
  }
}

}  // namespace vitrail::train
