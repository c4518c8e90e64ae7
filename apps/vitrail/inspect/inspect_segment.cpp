// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/inspect/inspect_segment.h"

#include <algorithm>
#include <array>

#include "apps/vitrail/input/model_kind.h"
#include "apps/vitrail/inspect/inspect_tree.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/output/value_listing.h"
#include "apps/vitrail/shell/usage_errors.h"
#include "vitrail/image/decode.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/sam/image_input_internal.h"

namespace vitrail::app {
namespace {

// The weights file of a model; none for a registered architecture.
struct Weights {
  std::shared_ptr<weights::Checkpoint> checkpoint;
  std::optional<weights::KeyMap> key_map;
};

Weights weights_of(const std::string& model) {
  if (!is_segmentation_model(model)) return {};
  auto checkpoint = models::ModelFiles(model).checkpoint();
  checkpoint->strip_model_prefix();
  weights::KeyMap key_map = models::sam_key_map(*checkpoint);
  return {std::move(checkpoint), std::move(key_map)};
}

void print_encoder(const models::SamEncoderConfig& encoder) {
  if (!encoder.stages.empty()) {
    print_output("encoder       TinyViT of {} stages, width {} to {}\n", encoder.stages.size(),
                 encoder.stages.front().dim, encoder.stages.back().dim);
    return;
  }
  std::string global;
  int64_t window = 0;
  for (size_t i = 0; i < encoder.blocks.size(); ++i) {
    window = std::max(window, encoder.blocks[i].window);
    if (encoder.blocks[i].window == 0) global += fmt::format(" {}", i);
  }
  print_output("encoder       width {}, depth {}, {} heads of {}, windows {}, global blocks{}\n", encoder.dim,
               encoder.blocks.size(), encoder.num_heads, encoder.head_dim, window, global.empty() ? " none" : global);
}

void print_summary(const Weights& weights, const models::Sam& sam) {
  const models::SamEncoderConfig& encoder = sam.config().encoder;
  const models::SamDecoderConfig& decoder = sam.config().decoder;
  print_output("architecture  segment_anything{}\n", decoder.high_quality ? ", high quality" : "");
  if (weights.checkpoint) {
    print_output("weights       {} ({}), {} keys\n", escaped(weights.checkpoint->path()), weights.checkpoint->format(),
                 weights.key_map->name());
    print_output("names         {}\n", weights.key_map->about());
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

// One pass, as Predictor composes it.  Modules report to the trace under segment_anything's names.  An image encoder
// alone has no masks.
models::SamMasks forward(const models::Sam& sam, const TraceInput& input) {
  const models::SamTrunk trunk = sam.image_encoder().trunk_outputs(input.images);
  const Tensor embedding = nn::traced(sam.image_encoder(), sam.image_encoder().neck(trunk.output));
  if (!sam.config().has_decoder) return {};
  const models::SamHqHead* const hq = sam.hq_head();
  const Tensor positions = sam.prompt_encoder().grid_positions();
  const Tensor sparse =
      sam.prompt_encoder().points(Tensor::from<double>({1, 2, 2}, {input.centre[0], input.centre[1], 0, 0}),
                                  {models::SamPoint::inside, models::SamPoint::padding});
  return sam.mask_decoder().forward(ops::add(embedding, sam.prompt_encoder().no_mask()), positions,
                                    sam.mask_decoder().tokens(sparse),
                                    hq ? hq->features(embedding, trunk.intermediate) : Tensor());
}

void print_sam_values(const ValueOptions& options, const Weights& weights, const models::Sam& sam) {
  ValueListing listing(options.slices, weights.key_map ? &*weights.key_map : nullptr);
  offer_weights(sam, weights.checkpoint.get(), listing);
  const bool traced = !options.trace.empty() && (listing.prints_rows() || !listing.complete());
  if (traced) {
    const TraceInput input = trace_input(options.trace, sam.config());
    const nn::TraceScope scope([&](const std::string& name, const Tensor& tensor) { listing.add(name, tensor); });
    listing.add("images", input.images);
    const models::SamMasks masks = forward(sam, input);
    if (masks.logits.defined()) listing.add("low_res_masks", masks.logits);
    if (masks.iou.defined()) listing.add("iou_predictions", masks.iou);
  }
  listing.finish(expected_names(traced));
}

}  // namespace

void inspect_segmentation(const SegmentInspection& options, bool quiet) {
  if (options.values.batch != 1) throw CLI::ValidationError("--batch", "Segment Anything is traced with one image");
  const Weights weights = weights_of(options.model);
  const bool has_values = !options.values.trace.empty() || !options.values.slices.empty();
  if (has_values && !weights.checkpoint && !quiet)
    print_note("vitrail: " + options.model + " has no weights; parameters are random (seed 0)");
  const models::Sam sam = segmentation_model(options.model, has_values ? Device::cpu : Device::meta);
  if (!options.tree && !options.keys && !has_values) print_summary(weights, sam);
  if (options.tree) print_tree(sam);
  if (options.keys && weights.checkpoint) print_keys(*weights.checkpoint);
  if (options.keys && !weights.checkpoint) print_parameters(sam);
  if (has_values) print_sam_values(options.values, weights, sam);
}

}  // namespace vitrail::app
