// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options of `vitrail segment`.
#include <optional>
#include <string>
#include <vector>

#include "apps/vitrail/output/output.h"
#include "apps/vitrail/shell/common.h"
#include "vitrail/sam/automatic.h"
#include "vitrail/sam/predictor.h"

namespace vitrail::app {

// What is written into the folder.
struct SegmentFiles {
  bool overlay = false, masks = false, csv = false, coco = false, sa1b = false, polygons = false;
};

struct SegmentOptions {
  std::string model, preset, mask, prompts, format = "text", logits, embedding, cache, output;
  std::vector<std::string> inputs, points, boxes, write{"overlay"};
  bool single = false, everything = false, precompute = false, exif = false, force = false;
  double opacity = 0.5;
  sam::AutomaticOptions automatic;

  void add_to(CLI::App& command);  // all but --exif
  // Throws CLI::Error for options that exclude each other or have no effect.
  void check() const;

  sam::PredictorOptions predictor_options(const GlobalOptions& global) const;
  std::string model_path() const;  // by default of the bundled model; throws CLI::RequiredError without one

  // --point and --box.  Throw CLI::Error for text that is no point or box, and for a second box.
  sam::Prompt prompt() const;
  bool has_prompt() const { return !points.empty() || !boxes.empty() || !mask.empty(); }
  bool makes_masks() const { return has_prompt() || !prompts.empty() || everything; }
  SegmentFiles files() const;

 private:
  void add_prompts_to(CLI::App& command);
  void add_outputs_to(CLI::App& command);
  void add_automatic_to(CLI::App& command);
  void check_prompts() const;
  void check_outputs() const;
};

// The value of --preset for a Segment Anything model; none if it is empty.  Throws CLI::ValidationError.
std::optional<models::SamPreprocessing> segmentation_preset(const std::string& name);

// The precision of the image encoder: fp32 unless another one is given.
kernels::Precision precision_of(const GlobalOptions& global);

}  // namespace vitrail::app
