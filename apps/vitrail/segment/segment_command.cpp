// SPDX-License-Identifier: Apache-2.0
// Segments images: with Segment Anything by prompts, with other models as their task runs.
#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "apps/vitrail/commands/commands.h"
#include "apps/vitrail/commands/task_command.h"
#include "apps/vitrail/embed/feature_file.h"
#include "apps/vitrail/output/progress.h"
#include "apps/vitrail/segment/prompt_results.h"
#include "apps/vitrail/segment/segment_folder.h"
#include "apps/vitrail/segment/segment_inputs.h"
#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/file_guard.h"
#include "vitrail/base/read_file.h"
#include "vitrail/models/sam/sam.h"

namespace vitrail::app {
namespace {

// Prompts whose logits are in memory together: 0.8 MB each in published models.
constexpr size_t kMaxPrompts = 64;

class Segmentation {
 public:
  Segmentation(const SegmentOptions& options, const GlobalOptions& global, models::ModelFiles files);
  int run();

 private:
  void segment(size_t i);
  bool prepare(size_t i, const std::string& path);
  void run_prompts(size_t i);
  void run_batch(size_t i, std::span<const GivenPrompt> given);
  void run_everything();
  void deliver(size_t i, const GivenPrompt& given, const sam::Prompt& prompt, const sam::Masks& masks);
  void fail_image(size_t i, const std::string& path, const std::string& message);
  void fail_prompt(size_t i, const GivenPrompt& given, const std::string& path, const std::string& message);
  void add_failure(size_t i, const GivenPrompt& given, const std::string& path, const std::string& message);

  // The place of a prompt among all.
  size_t order(size_t i, const GivenPrompt& given) const { return inputs_.prompts_in_file() ? given.number : i; }
  bool json() const { return options_.format == "json"; }

  const SegmentOptions& options_;
  const GlobalOptions& global_;
  SegmentInputs inputs_;
  std::unique_ptr<FeatureFile> embeddings_;
  std::optional<SegmentFolder> folder_;
  models::ModelFiles files_;
  sam::Predictor predictor_;
  std::optional<sam::EmbeddingCache> cache_;
  std::optional<PromptResults> results_;
  std::optional<Progress> progress_;
  std::optional<SegmentImage> image_;  // the current one
  std::vector<SegmentMask> masks_;     // those of the current image
  size_t failures_ = 0;
};

// Files that cannot be written fail before the model is loaded.
Segmentation::Segmentation(const SegmentOptions& options, const GlobalOptions& global, models::ModelFiles files)
    : options_(options),
      global_(global),
      inputs_(options),
      embeddings_(options.embedding.empty() ? nullptr : make_feature_file(options.embedding, DType::f32, false)),
      folder_(options.output.empty() ? std::nullopt : std::optional<SegmentFolder>(std::in_place, options)),
      files_(std::move(files)),
      predictor_(files_, options.predictor_options(global)) {
  if (options.makes_masks() && !predictor_.has_decoder()) {
    throw Error(options.model_path(), "a model with a mask decoder for prompts and --everything",
                "an image encoder alone (--embedding FILE.npy writes its embeddings)");
  }
  if (!options.cache.empty())
    cache_.emplace(options.cache, sam::embedding_model(files_, options.predictor_options(global)));
  if (options.everything || !options.makes_masks()) return;
  const int64_t masks = inputs_.any_multimask() ? predictor_.multimask_count() : 1;
  results_.emplace(options.logits, masks, predictor_.mask_size());
}

int Segmentation::run() {
  const std::optional<size_t> prompts = inputs_.prompts_in_file(), images = inputs_.images();
  const bool points = options_.everything && images == 1;  // their number is known later
  if (!points) progress_.emplace(prompts ? "prompts" : "images", prompts ? prompts : images, global_.quiet);
  for (size_t i = 0; folder_ && i < images.value_or(0); ++i) folder_->protect(*inputs_.path(i));
  size_t count = 0;
  for (; inputs_.path(count); ++count) {
    segment(count);
    flush_output();
    if (progress_ && !prompts) progress_->step();
  }
  if (count == 0) warn("no images");
  if (results_) results_->finish();
  if (folder_) folder_->finish();
  if (embeddings_) embeddings_->finish([this] { return predictor_.embedding_shape(); });
  return failures_ == 0 ? 0 : 1;
}

void Segmentation::segment(size_t i) {
  const std::string path = *inputs_.path(i);
  masks_.clear();
  if (!prepare(i, path)) return;
  if (embeddings_) embeddings_->add(path, image_->embedding().values);
  if (options_.everything) run_everything();
  run_prompts(i);
  if (folder_) folder_->add(*image_, masks_);
}

// Reads and embeds the image.  Returns false if that failed.
bool Segmentation::prepare(size_t i, const std::string& path) {
  try {
    image_.emplace(predictor_, cache_ ? &*cache_ : nullptr, image::DecodeOptions{.apply_exif = options_.exif}, path,
                   inputs_.bytes(i));
    static_cast<void>(image_->embedding());
    if (folder_ && folder_->needs_pixels()) static_cast<void>(image_->pixels());
  } catch (const Error& error) {
    check_mapped_files();
    fail_image(i, path, with_path(path, error.what()));
    return false;
  }
  check_mapped_files();
  return true;
}

void Segmentation::run_everything() {
  sam::AutomaticOptions automatic = options_.automatic;
  std::optional<Progress> points;
  if (!progress_) {
    automatic.progress = [&, shown = int64_t{0}](int64_t done, int64_t total) mutable {
      if (done == 0) {
        points.emplace("points", static_cast<size_t>(total), global_.quiet);
      } else {
        points->step(done - std::exchange(shown, done));
      }
    };
  }
  for (const sam::AutomaticMask& mask :
       sam::automatic_masks(predictor_, image_->embedding(), image_->pixels(), automatic)) {
    masks_.push_back(mask_of(mask));
  }
  points.reset();
  if (!json()) return print_output("{}: {} masks\n", escaped(image_->path()), masks_.size());
  print_json(sam::everything_json(image_->path(), masks_));
}

void Segmentation::run_prompts(size_t i) {
  const std::span<const GivenPrompt> all = inputs_.prompts(i);
  for (size_t first = 0; first < all.size(); first += kMaxPrompts) {
    run_batch(i, all.subspan(first, std::min(kMaxPrompts, all.size() - first)));
  }
}

void Segmentation::run_batch(size_t i, std::span<const GivenPrompt> given) {
  const sam::ImageEmbedding& embedding = image_->embedding();
  std::vector<sam::Prompt> prompts;
  std::vector<const GivenPrompt*> valid;
  for (const GivenPrompt& one : given) {
    try {
      prompts.push_back(resolved(one, embedding.width, embedding.height, predictor_.mask_size()));
      valid.push_back(&one);
    } catch (const Error& error) {
      fail_prompt(i, one, image_->path(), error.what());
    }
  }
  const std::vector<sam::Masks> masks = predictor_.predict(embedding, prompts);
  for (size_t p = 0; p < prompts.size(); ++p) deliver(i, *valid[p], prompts[p], masks[p]);
}

void Segmentation::deliver(size_t i, const GivenPrompt& given, const sam::Prompt& prompt, const sam::Masks& masks) {
  const sam::ImageEmbedding& embedding = image_->embedding();
  std::vector<SegmentMask> found = masks_of(predictor_, masks, prompt, embedding.width, embedding.height);
  PromptResult result{.logits = masks.logits};
  if (json()) {
    result.text = json_text(sam::prompt_json(image_->path(), given.number, found)) + "\n";
  } else {
    result.text = escaped(image_->path()) + (inputs_.prompts_in_file() ? "  " + given.where : "") + "\n";
    for (const SegmentMask& mask : found) {
      const auto [x, y, width, height] = sam::coco_box(mask);
      result.text += fmt::format("  IoU {:.3f}  {} pixels  box {},{},{},{}\n", mask.predicted_iou, sam::area(mask.rle),
                                 x, y, x + width, y + height);
    }
  }
  results_->add(order(i, given), std::move(result));
  if (progress_ && inputs_.prompts_in_file()) progress_->step();
  if (!folder_) return;
  for (SegmentMask& mask : found) {
    mask.prompt = given.number;
    masks_.push_back(std::move(mask));
  }
}

// Every result of an image that failed has the error in its place.
void Segmentation::fail_image(size_t i, const std::string& path, const std::string& message) {
  ++failures_;
  print_error(message);
  if (embeddings_) embeddings_->add_failure(path, message);
  if (options_.everything && json()) print_json({{"image", path}, {"error", message}});
  for (const GivenPrompt& given : inputs_.prompts(i)) add_failure(i, given, path, message);
}

void Segmentation::fail_prompt(size_t i, const GivenPrompt& given, const std::string& path,
                               const std::string& message) {
  const std::string shown = inputs_.prompts_in_file() ? message : with_path(path, message);
  ++failures_;
  print_error(shown);
  add_failure(i, given, path, shown);
}

void Segmentation::add_failure(size_t i, const GivenPrompt& given, const std::string& path,
                               const std::string& message) {
  PromptResult result;
  if (json()) result.text = json_text({{"image", path}, {"prompt", given.number}, {"error", message}}) + "\n";
  results_->add(order(i, given), std::move(result));
  if (progress_ && inputs_.prompts_in_file()) progress_->step();
}

// The command has the options of Segment Anything and those of the task's rows for other models.  The frames of a video
// run as the task of either.
struct SegmentCommand {
  SegmentOptions prompts;
  std::shared_ptr<TaskOptions> task = std::make_shared<TaskOptions>(TaskOptions{.task = "segment"});
  std::vector<CLI::Option*> of_prompts, of_task;  // that belong to one kind of model
  CLI::Option *opacity = nullptr, *render = nullptr;

  void add_to(CLI::App& command);
  void check(const CLI::App& command);
  void take_prompts_of_frames();
  int run(const GlobalOptions& global);
};

// The first option of a list that was given; null: none.
const CLI::Option* first_given(const std::vector<CLI::Option*>& options) {
  const auto found = std::ranges::find_if(options, [](const CLI::Option* option) { return option->count() > 0; });
  return found == options.end() ? nullptr : *found;
}

// owner, got: "belongs to …; the model is …".
void refuse_given(const std::vector<CLI::Option*>& options, const std::string& owner, const std::string& got) {
  if (const CLI::Option* const given = first_given(options))
    throw CLI::ValidationError(given->get_name(), "belongs to " + owner + "; the model is " + got);
}

void SegmentCommand::add_to(CLI::App& command) {
  prompts.add_to(command);
  opacity = command.get_option("--opacity");
  const std::vector<CLI::Option*> of_both{command.get_option("INPUT"), command.get_option("--model"),
                                          command.get_option("--force"), opacity};
  of_prompts = command.get_options();
  std::erase_if(of_prompts, [&](CLI::Option* option) { return std::ranges::find(of_both, option) != of_both.end(); });
  const size_t count = command.get_options().size();
  add_task_options(command, task);
  of_task = command.get_options();
  of_task.erase(of_task.begin(), of_task.begin() + static_cast<ptrdiff_t>(count));
  for (const char* option : {"--exif", "--frame-size", "--mjpeg", "--drop-frames"})
    std::erase(of_task, command.get_option(option));
  render = command.get_option("--render");
  for (CLI::Option* option : of_task) option->group("With another segmenter");
}

// What is wrong whatever the model is.
void SegmentCommand::check(const CLI::App& command) {
  prompts.exif = task->images.exif;
  if (task->images.frames.given()) std::erase(of_task, render);
  const CLI::Option *const prompt = first_given(of_prompts), *const other = first_given(of_task);
  if (prompt && other)
    throw CLI::ValidationError(other->get_name(), "expected no " + prompt->get_name() + " beside it");
  task->images.frames.check(command, prompts.inputs);
  if (prompts.model.empty()) refuse_given(of_task, "another segmenter (-m)", "Segment Anything");
  if (prompt || prompts.model.empty()) prompts.check();
}

// The prompt of the options is that of each frame.
void SegmentCommand::take_prompts_of_frames() {
  constexpr std::array kOfImages{"preset", "prompts", "output", "write", "logits", "embedding", "cache", "precompute"};
  for (const CLI::Option* option : of_prompts) {
    if (option->count() == 0) continue;
    const std::string name = option->get_lnames().front();
    if (std::ranges::find(kOfImages, name) != kOfImages.end())
      throw CLI::ValidationError("--" + name, "does not apply to frames, which have a line each (and --render FOLDER)");
    if (name == "format" && prompts.format != "json")
      throw CLI::ValidationError("--format", "expected json for frames, got " + prompts.format);
    if (name == "format" || name == "mask") continue;
    for (const std::string& text : option->results()) task->described->request.add(name, text);
  }
  if (prompts.mask.empty()) return;
  const std::vector<std::byte> mask = read_file(prompts.mask, image::kMaxFileBytes);
  task->described->request.add("mask", {reinterpret_cast<const char*>(mask.data()), mask.size()});
}

int SegmentCommand::run(const GlobalOptions& global) {
  models::ModelFiles files(prompts.model_path());
  const bool has_prompts = models::is_segment_anything(files.first);
  if (has_prompts) {
    refuse_given(of_task, "another segmenter", "Segment Anything");
    prompts.check();
    if (!task->images.frames.given()) return Segmentation(prompts, global, std::move(files)).run();
    take_prompts_of_frames();
  }
  task->model.model = prompts.model_path();
  task->images.inputs = prompts.inputs;
  task->force = prompts.force;
  if (opacity->count() > 0) task->described->request.add("opacity", opacity->as<std::string>());
  auto model = open_task_model(*task, global);
  if (!has_prompts) refuse_given(of_prompts, "Segment Anything", model->family());
  if (prompts.inputs.empty()) throw CLI::RequiredError("INPUT");
  return run_task(*task, std::move(model), global);
}

}  // namespace

void add_segment(CLI::App& program, const GlobalOptions& global, Run& run) {
  const auto segment = std::make_shared<SegmentCommand>();
  CLI::App* command = program.add_subcommand(
      "segment",
      "Segment objects of prompts (Segment Anything), all pixels by classes (semantic segmentation), or what texts "
      "describe (CLIPSeg)");
  command->footer(
      "Example: vitrail segment -m sam_vit_b.pth photo.jpg --point 200,150 -o masks\n"
      "         vitrail segment -m SEMANTIC_MODEL photo.jpg --render segments\n"
      "         vitrail segment -m CLIPSEG photo.jpg --text \"a cat\" --render masks");
  segment->add_to(*command);
  command->callback([segment, command, &global, &run] {
    segment->check(*command);
    run = [segment, &global] { return segment->run(global); };
  });
}

}  // namespace vitrail::app
