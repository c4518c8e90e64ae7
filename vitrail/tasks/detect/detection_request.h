// SPDX-License-Identifier: Apache-2.0
#pragma once
// What requests for objects share, whatever the objects' classes are.
#include <memory>
#include <optional>
#include <string>

#include "vitrail/tasks/detect/detections.h"
#include "vitrail/tasks/segment/segment_model.h"

namespace vitrail::tasks {

struct DetectionOptions {
  std::optional<double> threshold, nms;
  std::optional<int64_t> tile;
  double tile_overlap = 0.2;
  std::string masks;
};

void describe_detection(Fields& fields, DetectionOptions& options);

class DetectionRequest : public Request {
 public:
  bool keeps_photo() const override { return render_ || options().tile || segmenter_; }
  bool is_long() const override { return options().tile || segmenter_; }
  void compute(Item& item, const ImageEncoding* encoding, const ProgressCallback& progress) const override;
  analysis::ByteTrackerOptions tracking() const override;
  void track(Item& item, analysis::ByteTracker& tracker, int64_t frames) const override;
  std::string json(const Item& item) const override { return detections_json(item.name, of(item)); }
  std::vector<Output> outputs() const override { return {{"detections", {}}}; }
  Tensor array(const Item& item, size_t /*output*/) const override { return detections_array(of(item)); }
  image::Image render(const Item& item) const override { return detections_overlay(item.photo, of(item)); }
  std::vector<uint8_t> file(const Item& item, const std::string& kind) const override;

 protected:
  // threshold: that of the options by default.
  DetectionRequest(const LoadedModel& model, const Setting& setting, double threshold)
      : model_(model), render_(setting.render), track_(setting.track), threshold_(threshold) {}
  // Opens the model that the option "masks" names, once the options are read.
  void open_segmenter(const Setting& setting);

  // The score above which objects are found: a tracker also needs what it is unsure of.
  float found_above() const { return track_ ? static_cast<float>(tracking().low_score) : threshold(); }

 private:
  virtual const DetectionOptions& options() const = 0;
  // The objects in an image or a tile of it, in pixels of what was encoded, in any order.
  virtual Detections found(const Item& item, const ImageEncoding& encoding) const = 0;
  // Sets the masks of objects of the whole image, of what was encoded.
  virtual void add_masks(const ImageEncoding& /*encoding*/, Detections& /*detections*/) const {}
  // What is shown of the objects of the whole image, from which those that NMS leaves out are gone.
  virtual Detections chosen(Detections all) const { return all; }
  // False: the image is not larger than a tile.
  bool add_tiles(const Item& item, Detections& all, const ProgressCallback& progress) const;
  // Sets the masks of Segment Anything, with the boxes as prompts.
  void add_prompted_masks(const Item& item, Detections& all, const ProgressCallback& progress) const;
  // Objects whose score is above it are in the result.
  float threshold() const { return static_cast<float>(options().threshold.value_or(threshold_)); }
  static const Detections& of(const Item& item) { return std::any_cast<const Detections&>(item.value); }

  const LoadedModel& model_;
  bool render_, track_;
  double threshold_;
  std::shared_ptr<const SegmentModel> segmenter_;  // null: masks are the detector's, if it has them
};

}  // namespace vitrail::tasks
