// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <functional>
#include <map>
#include <memory>

#include "apps/vitrail/commands/commands.h"
#include "apps/vitrail/commands/zero_shot_options.h"
#include "apps/vitrail/embed/embedding_info.h"
#include "apps/vitrail/embed/feature_file.h"
#include "apps/vitrail/families/classifying_models.h"
#include "apps/vitrail/input/image_stream.h"
#include "apps/vitrail/input/shard_images.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/output/output_checks.h"
#include "apps/vitrail/output/output_folder.h"
#include "apps/vitrail/shell/field_options.h"
#include "vitrail/base/atomic_file.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/pipeline/feature_fields.h"

namespace vitrail::app {
namespace {

namespace fs = std::filesystem;

struct EmbedCommandOptions {
  ModelOptions model;
  ZeroShotOptions texts;
  StreamOptions images;
  infer::FeatureOptions features;
  std::string output, text, dtype = "fp32";
  bool has_text = false, force = false;
};

template <class AnyModel>
EmbeddingInfo info_of(const AnyModel& model, const EmbedCommandOptions& options) {
  EmbeddingInfo info = embedding_info(model, options.model.path(), options.features);
  info.dtype = options.dtype;
  info.tome = options.model.tome;
  info.exif = options.images.exif;
  return info;
}

// The shape of the features of an image, without one.
Shape row_shape(const Model& model, const infer::Request& request) {
  const auto& vit = model.config().vit;
  const Tensor blank = Tensor::zeros({1, vit.in_chans, vit.img_size[0], vit.img_size[1]});
  return model.session().run(blank, request)[0].select(0, 0).shape();
}

// The files beside the array.
std::vector<OutputFile> files_of(const std::string& output) {
  if (output == "-") return {};
  const auto beside = [&](const char* extension) { return fs::path(output).replace_extension(extension).string(); };
  if (output.ends_with(".npz")) return {{"-o", output, Kind::archive}};
  if (output.ends_with(".csv")) return {{"-o", output, Kind::feature_table}};
  if (!output.ends_with(".npy")) return {{"-o", output, Kind::array}};
  return {{"-o", output, Kind::array},
          {"-o (paths)", beside(".txt"), Kind::paths, {output, beside(".json")}},
          {"-o (model)", beside(".json"), Kind::record}};
}

// A row for each text, under the text where images have their path.  Blank lines have one, so that none is shifted.
int embed_texts(const EmbedCommandOptions& options, const GlobalOptions& global, FeatureFile& rows) {
  if (!options.images.inputs.empty()) throw CLI::ValidationError("--text", "either images or --text");
  const bool is_file = is_text_file(options.text);
  const std::vector<std::string> lines = is_file ? read_lines(options.text) : std::vector{options.text};
  const auto has_text = [is_file](const std::string& line) { return !is_file || !is_blank(line); };
  std::vector<std::string> texts;
  std::ranges::copy_if(lines, std::back_inserter(texts), has_text);
  if (texts.empty()) throw Error(options.text, "at least one line of text", "none");
  const DualModel model = load_dual_model(options.model.path(), options.model, global, options.texts.tokenizer);
  const Tensor embeddings = model.embed_texts(texts, options.features.l2_normalize);
  int64_t row = 0;
  for (const std::string& line : lines) {
    has_text(line) ? rows.add(line, embeddings.select(0, row++)) : rows.add_failure(line, "a blank line");
  }
  if (const size_t blank = lines.size() - texts.size(); blank > 0)
    warn(options.text + ": " + counted(blank, "blank line") +
         (blank == 1 ? ", whose row is NaN" : ", whose rows are NaN"));
  EmbeddingInfo info = info_of(model.images(), options);
  info.preprocessing.reset();  // texts have none
  rows.finish([&] { return embeddings.select(0, 0).shape(); }, to_json(info));
  return 0;
}

using OnOutcome = std::function<void(Outcome&)>;

// A row for each image that `run` passes on.  Returns how many failed.
size_t embed_images(const std::function<size_t(const OnOutcome&)>& run, const std::function<Shape()>& shape,
                    const EmbedCommandOptions& options, FeatureFile& rows, const EmbeddingInfo& info) {
  size_t failures = 0;
  failures += run([&](const Outcome& outcome) {
    if (!outcome.error.empty()) return rows.add_failure(outcome.path(), outcome.error);
    const Tensor& row = outcome.result();
    try {
      rows.check(row);
    } catch (const Error& error) {
      ++failures;
      print_error(with_path(outcome.path(), error.what()));
      return rows.add_failure(outcome.path(), error.what());
    }
    rows.add(outcome.path(), row);
  });
  const auto shape_without_features = [&] {
    // Rows of NaN alone replace no old file.  The record of a shard says which of its images failed.
    if (failures > 0 && !are_shards(options.images.inputs) && replaces_file(options.output))
      throw Error("embed", "an image that can be read", "none");
    return shape();
  };
  rows.finish(shape_without_features, to_json(info));
  return failures;
}

size_t embed_images(const ImageSource& source, const Model& model, const EmbedCommandOptions& options,
                    const GlobalOptions& global, FeatureFile& rows, const EmbeddingInfo& info) {
  const infer::Request request = model.request_of(options.features);
  const auto run = [&](const OnOutcome& on_outcome) {
    return run_images(source, model, request, options.images.batch, global, on_outcome);
  };
  return embed_images(
      run, [&] { return row_shape(model, request); }, options, rows, info);
}

// Models beside the Vision Transformer.
size_t embed_by_other_model(const EmbedCommandOptions& options, const GlobalOptions& global, FeatureFile& rows) {
  const auto model = open_classifying_model(options.model, global);
  const infer::Request request{.output = infer::Output::features, .features = options.features};
  const ImageRun passes = passes_of(*model, request);
  const Shape input = model->input_shape();
  const Shape shape = model->run(Tensor::zeros({1, input[0], input[1], input[2]}), request)[0].select(0, 0).shape();
  const ImageSource source = image_source(options.images, model->color_mode());
  const auto run = [&](const OnOutcome& on_outcome) {
    return run_images(source, passes, options.images.batch, global, on_outcome);
  };
  return embed_images(
      run, [&] { return shape; }, options, rows, info_of(*model, options));
}

// The shards by their output without its extension.
std::map<fs::path, std::string> outputs_of(const EmbedCommandOptions& options) {
  std::map<fs::path, std::string> outputs;
  for (const std::string& shard : options.images.inputs) {
    const auto [same, added] = outputs.emplace(fs::path(options.output) / fs::path(shard).stem(), shard);
    if (!added) throw Error("INPUT", "shards of different names", same->second + " and " + shard);
  }
  return outputs;
}

// FOLDER/embedding.json.  A folder with embeddings of other options or of another model is refused.
EmbeddingInfo claim_folder(const Model& model, const EmbedCommandOptions& options) {
  const EmbeddingInfo info = info_of(model, options);
  const fs::path path = info_path(options.output);
  if (const auto before = read_embedding_info(path)) {
    check_same_embedding(*before, info, options.output);
    check_same_rows(*before, info, options.output);
    check_same_preprocessing(*before, info, options.output);
    return info;
  }
  AtomicFile file(path);
  file.write(to_json(info));
  file.commit();
  return info;
}

// Whether a shard has its features, which appear together with the list.  Those of a shard that changed later count if
// its images have the same names and sizes.
bool is_complete(const fs::path& shard, const fs::path& array, const fs::path& list) {
  std::error_code error;
  if (!fs::exists(array, error) || !fs::exists(list, error)) return false;
  return fs::last_write_time(shard, error) <= fs::last_write_time(list, error) || ShardImages(shard).are_in(list);
}

// FOLDER/SHARD.npy and FOLDER/SHARD.jsonl for each shard.
int embed_shards(const EmbedCommandOptions& options, const GlobalOptions& global) {
  const auto outputs = outputs_of(options);
  create_output_folder(options.output, "the features");
  std::vector<OutputFile> files;
  for (const auto& [output, shard] : outputs) {
    const std::string array = output.string() + ".npy";
    files.insert(files.end(),
                 {{"-o", array, Kind::array}, {"-o", output.string() + ".jsonl", Kind::shard_records, {array}}});
  }
  check_outputs(files, options.images.inputs, options.force);
  const Model model = load_model(options.model, global);
  const EmbeddingInfo info = claim_folder(model, options);
  size_t failures = 0, complete = 0;
  data::LeftOut left_out;
  for (const auto& [output, shard] : outputs) {
    const std::string array = output.string() + ".npy", list = output.string() + ".jsonl";
    if (is_complete(shard, array, list)) {
      ++complete;
      continue;
    }
    const ShardImages images(shard);
    images.count_left_out(left_out);
    const auto line = [&](const std::string& name, const std::string& reason) { return images.record(name, reason); };
    const auto rows = make_npy_features(array, list, line, dtype_from_name(options.dtype));
    failures += embed_images(images.source(model, options.images.exif), model, options, global, *rows, info);
  }
  if (!left_out.empty()) warn(data::left_out_kinds(left_out));
  if (complete > 0 && !global.quiet)
    print_note(counted(complete, "shard") + (complete == 1 ? " is" : " are") + " complete already");
  return failures == 0 ? 0 : 1;
}

int embed(const EmbedCommandOptions& options, const GlobalOptions& global) {
  if (are_shards(options.images.inputs)) return embed_shards(options, global);
  // Fails before the model is loaded.
  const std::unique_ptr<FeatureFile> rows = make_feature_file(options.output, dtype_from_name(options.dtype));
  if (options.has_text) return embed_texts(options, global, *rows);
  if (options.images.inputs.empty()) throw CLI::ValidationError("INPUT", "images, or --text");
  if (!is_vision_transformer(options.model)) return embed_by_other_model(options, global, *rows) == 0 ? 0 : 1;
  const Model model = load_model(options.model, global);
  const EmbeddingInfo info = info_of(model, options);
  return embed_images(image_source(options.images, model.color_mode()), model, options, global, *rows, info) == 0 ? 0
                                                                                                                  : 1;
}

}  // namespace

void add_embed(CLI::App& program, const GlobalOptions& global, Run& run) {
  auto options = std::make_shared<EmbedCommandOptions>();
  CLI::App* command = program.add_subcommand("embed", "Extract features");
  command->footer("Example: vitrail embed -m MODEL photos/ -o features.npy --normalize");
  options->images.add_inputs_to(*command);
  CLI::Option* text = command->add_option(
      "--text", options->text, "Embed a text instead, or each line of a text file; - is standard input (CLIP, SigLIP)");
  accept_dash(*text);
  options->texts.add_tokenizer_to(*command);
  options->model.add_to(*command);
  options->model.add_merging_to(*command);
  command
      ->add_option("-o,--output", options->output,
                   "FILE.npy: features [n, D]; [n, rows, columns, D] for patch, [n, N, D] for all; several layers are "
                   "the second axis, [n, layers, …].  The image paths are in FILE.txt, the model in FILE.json; - is "
                   "standard output.  FILE.npz: the arrays features and paths.  FILE.csv: a row of path, features and "
                   "error for each image.  FOLDER, for webdataset shards (.tar): SHARD.npy and SHARD.jsonl for each "
                   "that does not have both or has other images, and embedding.json")
      ->required();
  add_field_options(*command, pipeline::describe_features, options->features, {"tokens", "layer", "no-norm"},
                    [text](CLI::Option& option) { option.excludes(text); });
  add_field_options(*command, [options](Fields& f) {
    f.choice({"dtype", "Type of the values in an array: fp32 or fp16"}, options->dtype, {"fp32", "fp16"});
  });
  add_field_options(*command, pipeline::describe_features, options->features, {"normalize"});
  add_force_to(*command, options->force);
  options->images.add_to(*command);
  command->callback([=, &global, &run] {
    options->has_text = text->count() > 0;  // also of an empty text
    std::vector<std::string> inputs = options->model.files();
    inputs.insert(inputs.end(), options->images.inputs.begin(), options->images.inputs.end());
    inputs.push_back(options->text);
    if (!are_shards(options->images.inputs)) check_outputs(files_of(options->output), inputs, options->force);
    run = [options, &global] { return embed(*options, global); };
  });
}

}  // namespace vitrail::app
