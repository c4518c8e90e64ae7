// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <filesystem>
#include <functional>
#include <limits>

#include "apps/vitrail/commands.h"
#include "apps/vitrail/image_stream.h"
#include "apps/vitrail/output.h"
#include "vitrail/analysis/knn.h"
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

constexpr const char* kStandardOutput = "/dev/stdout";

// The file with the paths of the images; none for features that do not go to a regular file.
std::optional<std::filesystem::path> list_path(const std::string& features) {
  if (features.starts_with("/dev/")) return std::nullopt;
  const auto path = std::filesystem::path(features).replace_extension(".txt");
  if (path == features)
    throw CLI::ValidationError("-o", features + " is the name of the list of paths; choose another one, as x.npy");
  return path;
}

// A line of the list.  A path with a line break, or one that begins with a backslash, is escaped and marked by a
// backslash in front, as in the output of sha256sum.
std::string list_line(const std::string& path) {
  if (path.find_first_of("\n\r") == path.npos && !path.starts_with('\\')) return path + "\n";
  std::string line = "\\";
  for (const char c : path) line += c == '\n' ? "\\n" : c == '\r' ? "\\r" : c == '\\' ? "\\\\" : std::string(1, c);
  return line + "\n";
}

// Writes one row of features per image, and the list of their paths.  The first image that succeeds determines the
// shape; rows of NaN for images that failed before it are written at that point.
class FeatureFile {
 public:
  explicit FeatureFile(const std::string& path) : features_(path, DType::f32) {
    if (const auto list = list_path(path)) list_.emplace(*list);
  }

  void add(const std::string& path, const Tensor& row) {
    if (!shape_) begin(row.shape());
    if (!(row.shape() == *shape_))
      throw Error("embed", "features of shape " + shape_->to_string() + " for all images", row.shape().to_string());
    features_.write_rows(row.contiguous().data<float>(), 1);
    add_path(path);
  }
  void add_failure(const std::string& path) {
    if (shape_) {
      features_.write_rows(nan_row_.data(), 1);
    } else {
      ++leading_failures_;
    }
    add_path(path);
  }
  // `shape` is that of a row, for the case that no image succeeded.
  void finish(const std::function<Shape()>& shape) {
    if (!shape_) begin(shape());
    features_.finish(list_ ? &*list_ : nullptr);
  }

 private:
  void begin(const Shape& shape) {
    shape_ = shape;
    features_.begin(std::span(shape.begin(), static_cast<size_t>(shape.rank())));
    nan_row_.assign(static_cast<size_t>(shape.numel()), std::numeric_limits<float>::quiet_NaN());
    for (; leading_failures_ > 0; --leading_failures_) features_.write_rows(nan_row_.data(), 1);
  }
  void add_path(const std::string& path) {
    if (list_) list_->write(list_line(path));
  }

  std::optional<Shape> shape_;
  NpyWriter features_;
  std::optional<AtomicFile> list_;
  std::vector<float> nan_row_;
  size_t leading_failures_ = 0;
};

infer::Tokens tokens_from_name(const std::string& name) {
  if (name == "cls") return infer::Tokens::cls;
  if (name == "patch") return infer::Tokens::patch;
  return name == "all" ? infer::Tokens::all : infer::Tokens::pooled;
}

// The shape of the features of an image, without one.
Shape row_shape(const Model& model, const infer::Request& request) {
  const auto& vit = model.config().vit;
  const Tensor blank = Tensor::zeros({1, vit.in_chans, vit.img_size[0], vit.img_size[1]});
  return model.session().run(blank, request)[0].select(0, 0).shape();
}

int embed(const Options& options, const GlobalOptions& global) {
  FeatureFile rows(options.output == "-" ? kStandardOutput : options.output);  // fails before the model is loaded
  const Model model = load_model(options.model, global);
  const ImageSource source = image_source(options.inputs, model, options.exif);
  const infer::Request request{.output = infer::Output::features,
                               .tokens = tokens_from_name(options.tokens),
                               .layer = options.layer,
                               .normalize = !options.no_norm};
  size_t failures = 0, images = 0;
  failures += run_images(source, model, request, options.batch, global, [&](const Outcome& outcome) {
    ++images;
    if (!outcome.error.empty()) return rows.add_failure(outcome.path);
    try {
      rows.add(outcome.path, options.normalize ? analysis::normalized_rows(outcome.result) : outcome.result);
    } catch (const Error& error) {
      ++failures;
      print_error(with_path(outcome.path, error.what()));
      rows.add_failure(outcome.path);
    }
  });
  if (images == 0) print_warning("no images: the array has no rows");
  rows.finish([&] { return row_shape(model, request); });
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
      ->add_option(
          "-o,--output", options->output,
          "FILE.npy: features, float32 [n, D], or [n, N, D] for several tokens; image paths go to FILE.txt.  - is "
          "standard output")
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
