// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <cmath>
#include <limits>

#include "apps/vitrail/commands.h"
#include "apps/vitrail/image_stream.h"
#include "apps/vitrail/output.h"
#include "vitrail/base/atomic_file.h"
#include "vitrail/base/error.h"
#include "vitrail/base/npy.h"

namespace vitrail::app {
namespace {

struct Options {
  ModelOptions model;
  std::vector<std::string> inputs;
  std::string output, tokens = "pooled";
  int64_t layer = -1, batch = 8;
  bool no_norm = false, normalize = false, exif = false;
};

// Writes one row of features per image.  The first image that succeeds determines the shape; rows of NaN for images
// that failed before it are written at that point.
class FeatureFile {
 public:
  explicit FeatureFile(std::string path) : path_(std::move(path)) {}

  void add(const Tensor& row) {
    if (!file_) open(row.shape());
    if (!(row.shape() == shape_))
      throw Error("embed", "features of shape " + shape_.to_string() + " for all images", row.shape().to_string());
    file_->write_rows(row.contiguous().data<float>(), 1);
  }
  void add_failure() {
    if (file_) {
      file_->write_rows(nan_row_.data(), 1);
    } else {
      ++leading_failures_;
    }
  }
  // Returns false if no image succeeded: no file is written then.
  bool finish() {
    if (file_) file_->finish();
    return file_.has_value();
  }

 private:
  void open(const Shape& shape) {
    shape_ = shape;
    file_.emplace(path_, DType::f32, std::span(shape.begin(), static_cast<size_t>(shape.rank())));
    nan_row_.assign(static_cast<size_t>(shape.numel()), std::numeric_limits<float>::quiet_NaN());
    for (; leading_failures_ > 0; --leading_failures_) file_->write_rows(nan_row_.data(), 1);
  }

  std::string path_;
  Shape shape_;
  std::optional<NpyWriter> file_;
  std::vector<float> nan_row_;
  size_t leading_failures_ = 0;
};

// L2-normalises each vector along the last axis.  A zero vector stays zero.
Tensor l2_normalized(const Tensor& features) {
  Tensor result = features.clone();
  const int64_t width = result.size(-1);
  float* data = result.data<float>();
  for (int64_t start = 0; start < result.numel(); start += width) {
    double squares = 0;
    for (int64_t i = 0; i < width; ++i) squares += static_cast<double>(data[start + i]) * data[start + i];
    const float scale = squares > 0 ? static_cast<float>(1.0 / std::sqrt(squares)) : 0.0f;
    for (int64_t i = 0; i < width; ++i) data[start + i] *= scale;
  }
  return result;
}

infer::Tokens tokens_from_name(const std::string& name) {
  if (name == "cls") return infer::Tokens::cls;
  if (name == "patch") return infer::Tokens::patch;
  return name == "all" ? infer::Tokens::all : infer::Tokens::pooled;
}

int embed(const Options& options, const GlobalOptions& global) {
  const LoadedModel model = load_model(options.model, global);
  const ImageSource source = image_source(options.inputs, model, options.exif);
  const infer::Request request{.output = infer::Output::features,
                               .tokens = tokens_from_name(options.tokens),
                               .layer = options.layer,
                               .normalize = !options.no_norm};
  FeatureFile rows(options.output);
  std::string paths;
  size_t failures = 0;
  failures += run_images(source, model, request, options.batch, global, [&](const Outcome& outcome) {
    paths += outcome.path + "\n";
    if (!outcome.error.empty()) return rows.add_failure();
    try {
      rows.add(options.normalize ? l2_normalized(outcome.result) : outcome.result);
    } catch (const Error& error) {
      ++failures;
      print_error(with_path(outcome.path, error.what()));
      rows.add_failure();
    }
  });
  if (rows.finish()) {
    AtomicFile list(std::filesystem::path(options.output).replace_extension(".txt"));
    list.write(paths);
    list.commit();
  }
  return failures == 0 ? 0 : 1;
}

}  // namespace

void add_embed(CLI::App& program, const GlobalOptions& global, Run& run) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("embed", "Extract features");
  command->footer("Example: vitrail embed -m MODEL photos/ -o features.npy --normalize");
  command->add_option("INPUT", options->inputs, "Images, folders, or - for paths on standard input")->required();
  options->model.add_to(*command);
  options->model.add_merging_to(*command);
  command
      ->add_option("-o,--output", options->output,
                   "FILE.npy: features, float32 [n, D], or [n, N, D] for several tokens; image paths go to FILE.txt")
      ->required();
  command->add_option("--tokens", options->tokens, "Tokens: pooled (the input of the head), cls, patch or all")
      ->capture_default_str()
      ->check(CLI::IsMember({"pooled", "cls", "patch", "all"}));
  command
      ->add_option("--layer", options->layer,
                   "Index of the block whose output is written; negative counts from the end")
      ->capture_default_str();
  command->add_flag("--no-norm", options->no_norm, "Skip the final norm");
  command->add_flag("--normalize", options->normalize, "L2-normalise each feature vector");
  command->add_option("--batch", options->batch, "Batch size")->capture_default_str()->check(CLI::Range(1, 1024));
  command->add_flag("--exif", options->exif, "Apply the EXIF orientation");
  command->callback([options, &global, &run] { run = [options, &global] { return embed(*options, global); }; });
}

}  // namespace vitrail::app
