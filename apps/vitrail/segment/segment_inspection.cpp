// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/segment/segment_family.h"

#include <algorithm>
#include <array>

#include "apps/vitrail/families/model_options.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/output/value_listing.h"
#include "apps/vitrail/shell/usage_errors.h"
#include "vitrail/image/decode.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/sam/image_input_internal.h"
#include "vitrail/sam/traced_pass.h"

namespace vitrail::app {
namespace {

std::string listed(const std::vector<int64_t>& numbers) {
  std::string text;
  for (const int64_t number : numbers) text += fmt::format(" {}", number);
  return text.empty() ? " none" : text;
}

void print_hiera(const models::HieraConfig& hiera) {
  std::vector<int64_t> depths, heads, windows;
  for (const models::HieraStage& stage : hiera.stages) {
    depths.push_back(stage.depth);
    heads.push_back(stage.num_heads);
    windows.push_back(stage.window);
  }
  print_output("encoder       Hiera, width {} to {}, depths{}, heads{}, windows{}, global blocks{}\n",
               hiera.stages.front().dim, hiera.stages.back().dim, listed(depths), listed(heads), listed(windows),
               listed(hiera.global_blocks));
}

void print_encoder(const models::SamEncoderConfig& encoder) {
  if (encoder.hiera) return print_hiera(*encoder.hiera);
  if (!encoder.stages.empty()) {
    print_output("encoder       TinyViT of {} stages, width {} to {}\n", encoder.stages.size(),
                 encoder.stages.front().dim, encoder.stages.back().dim);
    return;
  }
  std::vector<int64_t> global;
  int64_t window = 0;
  for (size_t i = 0; i < encoder.blocks.size(); ++i) {
    window = std::max(window, encoder.blocks[i].window);
    if (encoder.blocks[i].window == 0) global.push_back(static_cast<int64_t>(i));
  }
  print_output("encoder       width {}, depth {}, {} heads of {}, windows {}, global blocks{}\n", encoder.dim,
               encoder.blocks.size(), encoder.num_heads, encoder.head_dim, window, listed(global));
}

// The input of the image encoder, and the centre of the image in its pixels.
struct TraceInput {
  Tensor images;  // [1, 3, S, S]
  std::array<double, 2> centre;
};

TraceInput trace_input(const std::string& path, const models::SamConfig& config) {
  const models::SamEncoderConfig& encoder = config.encoder;
  const int64_t size = encoder.image_size();
  const double middle = static_cast<double>(size) / 2;
  if (path == "random") return {Tensor::randn({1, encoder.in_chans, size, size}, 1), {middle, middle}};
  const sam::InputFrame frame = sam::input_frame(config);
  const image::Image resized = frame.resized(image::read_image(path, {.mode = image::ColorMode::rgb}));
  const Tensor images = Tensor::empty({1, 3, size, size});
  frame.write(resized, images.data<float>());
  return {images, {static_cast<double>(resized.width) / 2, static_cast<double>(resized.height) / 2}};
}

class InspectedSam : public InspectedModel {
 public:
  InspectedSam(const NamedModel& model, std::string trace) : model_(model), trace_(std::move(trace)) {
    if (!model.files) return;
    checkpoint_ = model.files->checkpoint();
    checkpoint_->strip_model_prefix();
    key_map_ = models::sam_key_map(*checkpoint_);
  }

  std::string source() const override { return model_.name; }
  const weights::Checkpoint* checkpoint() const override { return checkpoint_.get(); }
  const weights::KeyMap* key_map() const override { return key_map_ ? &*key_map_ : nullptr; }
  std::shared_ptr<const nn::Module> build(Device device) const override {
    return std::make_unique<models::Sam>(segmentation_model(model_, device));
  }
  void print_summary() const override;
  void trace(const nn::Module& model, ValueListing& listing) const override;

 private:
  const NamedModel& model_;
  std::string trace_;  // an image or "random"
  std::shared_ptr<weights::Checkpoint> checkpoint_;
  std::optional<weights::KeyMap> key_map_;
};

void InspectedSam::print_summary() const {
  const models::Sam sam = segmentation_model(model_, Device::meta);
  const models::SamEncoderConfig& encoder = sam.config().encoder;
  const models::SamDecoderConfig& decoder = sam.config().decoder;
  print_output("architecture  segment_anything{}{}\n", encoder.hiera ? ", second generation" : "",
               decoder.high_quality ? ", high quality" : "");
  if (checkpoint_) {
    print_output("weights       {} ({}), {} keys\n", escaped(checkpoint_->path()), checkpoint_->format(),
                 key_map_->name());
    print_output("names         {}\n", key_map_->about());
  } else {
    print_output("weights       none\n");
  }
  print_output("input         {} channels, image {}×{}, patch {}×{}\n", encoder.in_chans, encoder.image_size(),
               encoder.image_size(), encoder.patch_size, encoder.patch_size);
  print_encoder(encoder);
  if (!sam.config().has_decoder) {
    print_output("decoder       none: embeddings alone\n");
  } else {
    print_output("decoder       width {}, depth {}, {} heads, {} masks of {}×{}\n", decoder.dim, decoder.depth,
                 decoder.num_heads, decoder.mask_tokens, sam.config().mask_size(), sam.config().mask_size());
  }
  print_output("parameters    {}\n", sam.num_parameters());
}

// A pass over an image and a click at its centre.
void InspectedSam::trace(const nn::Module& model, ValueListing& listing) const {
  const auto& sam = static_cast<const models::Sam&>(model);
  const TraceInput input = trace_input(trace_, sam.config());
  listing.add("images", input.images);
  const models::SamMasks masks =
      sam::traced_pass(sam, input.images, Tensor::from<double>({1, 2, 2}, {input.centre[0], input.centre[1], 0, 0}),
                       {models::SamPoint::inside, models::SamPoint::padding});
  if (masks.logits.defined()) listing.add("low_res_masks", masks.logits);
  if (masks.iou.defined()) listing.add("iou_predictions", masks.iou);
  if (masks.object_score.defined()) listing.add("object_score_logits", masks.object_score);
}

}  // namespace

std::unique_ptr<InspectedModel> inspect_segmentation(const NamedModel& model, const ModelOptions& options,
                                                     const ValueOptions& values) {
  refuse_model_options(options, "Segment Anything");
  if (values.batch != 1) throw CLI::ValidationError("--batch", "Segment Anything is traced with one image");
  return std::make_unique<InspectedSam>(model, values.trace);
}

}  // namespace vitrail::app
