// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <filesystem>

#include "apps/vitrail/commands/commands.h"
#include "apps/vitrail/convert/convert_dual.h"
#include "apps/vitrail/convert/convert_tensors.h"
#include "apps/vitrail/families/family.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/output/output_checks.h"
#include "apps/vitrail/shell/field_options.h"
#include "apps/vitrail/shell/usage_errors.h"
#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/models/bundled.h"
#include "vitrail/models/check_weights.h"
#include "vitrail/models/text_tower.h"
#include "vitrail/models/written_model.h"
#include "vitrail/onnx/export_text.h"
#include "vitrail/weights/hub_layout.h"

namespace vitrail::app {
namespace {

namespace fs = std::filesystem;

std::string form_of(const models::WrittenModel& written) {
  return written.timm_name.empty() ? ", in vitrail's own form, because timm has no such architecture"
                                   : ", as timm's " + written.timm_name;
}

void note_source(const models::OpenedModel& opened, const std::string& output) {
  print_note(fmt::format("{} (source: {} keys, {})", output, opened.key_map.name(), opened.checkpoint->format()));
}

int convert_with_activations(const models::OpenedModel& opened, const ConvertCommandOptions& options,
                             const GlobalOptions& global) {
  const std::string& dtype = options.onnx.activations;
  const QuantizedModel quantized = quantized_model(opened, dtype, options.int8.calibration_inputs, options.model.model);
  onnx::OnnxOptions values = options.onnx.values;
  values.activations = quantized.activations;
  onnx::export_onnx(quantized.model, opened.config, options.output, values);
  if (!global.quiet) {
    note_source(
        opened,
        fmt::format("{}: opset {}, {} parameters, {} linear layers with int8 weights and {} activations",
                    options.output, values.opset, quantized.model.num_parameters(), values.activations.size(), dtype));
  }
  return 0;
}

int write_onnx_file(models::OpenedModel opened, const ConvertCommandOptions& options, const GlobalOptions& global) {
  const bool int8 = options.dtype == "int8";
  if (int8 && !opened.config.int8) {
    throw Error(options.model.model, "an int8 folder, for an ONNX file in int8",
                "another model (first run vitrail convert MODEL -o FOLDER --dtype int8 --calibrate IMAGES)");
  }
  const models::VisionTransformer model =
      models::build_model(opened, int8 ? weights::Int8Weights::keep : weights::Int8Weights::dequantize);
  if (!int8) opened.config.int8.reset();
  std::optional<models::TextTower> text;  // opened before the first file is written
  if (models::has_text_tower(opened)) text = models::build_text_tower(opened);
  const onnx::OnnxOptions values = options.onnx.values;
  if (text) {
    onnx::export_dual_onnx(model, opened.config, *text, options.output, values);
  } else {
    onnx::export_onnx(model, opened.config, options.output, values);
  }
  if (global.quiet) return 0;
  note_source(opened, fmt::format("{}: opset {}, {} parameters, {}", options.output, values.opset,
                                  model.num_parameters(), options.dtype));
  if (text) {
    print_note(fmt::format("{}: opset {}, {} parameters, fp32", onnx::text_onnx_file(options.output).string(),
                           values.opset, text->model.num_parameters()));
  }
  return 0;
}

void check_onnx_options(const ConvertCommandOptions& options) {
  if (options.onnx.quantizes_activations()) {
    if (options.dtype != "int8") throw CLI::ValidationError("--activations", "requires --dtype int8");
    if (options.int8.calibration_inputs.empty())
      throw CLI::ValidationError("--activations", "requires --calibrate IMAGES, which the scales are chosen for");
  } else if (!options.int8.calibration_inputs.empty()) {
    throw CLI::ValidationError("--calibrate",
                               "is for an int8 folder, from which the ONNX file is then made, or for --activations");
  }
}

int convert_to_onnx(const models::OpenedModel& opened, const ConvertCommandOptions& options,
                    const GlobalOptions& global) {
  return options.onnx.quantizes_activations() ? convert_with_activations(opened, options, global)
                                              : write_onnx_file(opened, options, global);
}

int convert_dual(const models::OpenedModel& opened, const ConvertCommandOptions& options, const GlobalOptions& global) {
  models::check_weights(opened);
  const NamedTensors tensors = tensors_as(tensors_of(*opened.checkpoint), dtype_from_name(options.dtype));
  write_dual_folder(opened, tensors, options.output);
  if (!global.quiet) {
    note_source(opened,
                fmt::format("{}: {} tensors of both towers, {}", options.output, tensors.size(), options.dtype));
  }
  return 0;
}

// The files that a model may be read from: those of its folder, of a training run's, or beside its weights.
std::vector<std::string> source_files(const std::string& source) {
  std::error_code error;
  fs::path path = source;
  if (!fs::exists(path, error)) path = models::find_bundled(source).value_or(path);
  std::vector<std::string> files{path.string()};
  for (const fs::path& folder : {fs::is_directory(path, error) ? path : path.parent_path(), path / "model"}) {
    for (const char* name : {"model.safetensors", "config.json"}) files.push_back((folder / name).string());
  }
  return files;
}

// Files in the folder of a training run would hide its model.
void check_output_files(const ConvertCommandOptions& options) {
  const fs::path folder = options.output;
  std::error_code error;
  if (fs::exists(folder / "model" / "config.json", error))
    throw CLI::ValidationError("-o", "expected another folder than the training run " + folder.string());
  std::vector<OutputFile> files{{"-o", (folder / "model.safetensors").string(), Kind::weights},
                                {"-o", (folder / "config.json").string(), Kind::json}};
  if (is_onnx_file(options.output)) {
    files = {{"-o", options.output, Kind::onnx}};
    for (const char* part : {".text.onnx", ".encoder.onnx", ".decoder.onnx"})
      files.push_back({"-o", fs::path(folder).replace_extension(part).string(), Kind::onnx});
  }
  check_outputs(files, source_files(options.model.path()), options.force);
}

// preprocessor_config.json of a model for a folder that has no other model's.
std::string processor_for(const models::ModelConfig& config, const fs::path& folder) {
  const std::string text = models::write_preprocessor_config(config.preprocessing);
  // With a crop_pct in config.json no processor's file is read.
  if (config.preprocessing.rule == models::ResizeRule::timm && config.preprocessing.crop_pct) return text;
  std::vector<std::string> written;
  if (!text.empty()) written.emplace_back("preprocessor_config.json");
  weights::check_no_other_processor(folder, written);
  return text;
}

int convert(const ConvertCommandOptions& options, const GlobalOptions& global) {
  if (options.dtype != "int8" && !options.int8.calibration_inputs.empty())
    throw CLI::ValidationError("--calibrate", "requires --dtype int8");
  check_output_kind(options.onnx, options.output, options.dtype);
  check_output_files(options);
  if (is_onnx_file(options.output)) check_onnx_options(options);
  const NamedModel model{options.model.path(), models::ModelFiles(options.model.path())};
  return family_of(model).convert(model, options, global);
}

}  // namespace

int convert_image_model(const NamedModel& named, const ConvertCommandOptions& options, const GlobalOptions& global) {
  const bool int8 = options.dtype == "int8";
  if (options.onnx.single_mask)
    throw CLI::ValidationError("--single-mask", "is for a Segment Anything model, which this is not");
  models::OpenedModel opened = options.model.open(*named.files);
  if (is_onnx_file(options.output)) return convert_to_onnx(opened, options, global);
  if (models::has_text_tower(opened)) {
    const std::string reason = why_image_tower_alone(opened, options.model, int8);
    if (reason.empty()) return convert_dual(opened, options, global);
    warn(options.model.model + ": the text tower is left out: the output is the image tower, because of " + reason +
         (int8 ? "; zeroshot needs both, which --dtype fp16 keeps" : ""));
  }
  const std::string processor = processor_for(opened.config, options.output);
  models::VisionTransformer model = models::build_model(opened);
  opened.config.int8.reset();
  Int8Conversion conversion;
  if (int8) {
    conversion = int8_conversion(model, options.int8, opened.config, options.model.model);
    opened.config.int8 = conversion.config;
  }
  const models::WrittenModel written =
      int8 ? models::WrittenModel{models::write_model_config(opened.config), int8_tensors(model, conversion)}
           : models::written_model(opened.config, tensors_as(parameters_of(model), dtype_from_name(options.dtype)));
  weights::write_hub_folder(options.output, written.config_json, written.tensors, processor);
  if (!global.quiet) {
    note_source(opened, fmt::format("{}: {} tensors, {} parameters, {}{}", options.output, written.tensors.size(),
                                    model.num_parameters(), options.dtype, int8 ? "" : form_of(written)));
    if (int8) print_excluded_layers(*opened.config.int8, 4 * opened.config.vit.depth);
  }
  return 0;
}

void add_convert(CLI::App& program, const GlobalOptions& global, Run& run) {
  auto options = std::make_shared<ConvertCommandOptions>();
  CLI::App* command = program.add_subcommand(
      "convert", "Convert a model to a folder with config.json and model.safetensors, or to an ONNX file");
  command->footer("Example: vitrail convert vit_b_16.pth --config vit_base_patch16_224 -o vit_b_16/");
  command->add_option("MODEL", options->model.model, "Model to convert")->required();
  options->model.add_to(*command, false);
  command
      ->add_option(
          "-o,--output", options->output,
          "Output folder, or a file that ends in .onnx. For sam.onnx, Segment Anything gives sam.encoder.onnx and "
          "sam.decoder.onnx. For clip.onnx, a dual model gives clip.onnx and clip.text.onnx")
      ->required();
  add_field_options(*command, [options](Fields& f) {
    f.choice({"dtype", "Data type of the weights: fp32, bf16, fp16, or int8 for the linear layers of the blocks"},
             options->dtype, {"fp32", "bf16", "fp16", "int8"});
  });
  CLI::Option* calibrate =
      command
          ->add_option(
              "--calibrate", options->int8.calibration_inputs,
              "With --dtype int8: representative images or folders, for smoothing, GPTQ rounding and the choice of "
              "layers that stay in 16 bits; for an ONNX file, the scales of --activations")
          ->type_name("IMAGES");
  add_field_options(*command, [options](Fields& f) {
    f.number({"tolerance", "With --calibrate: maximum relative L2 error of the logits or maps"},
             options->int8.tolerance, kAboveZero);
  });
  add_force_to(*command, options->force);
  options->onnx.add_to(*command);
  command->get_option("--tolerance")->needs(calibrate)->excludes(command->get_option("--activations"));
  command->callback([options, &global, &run] { run = [options, &global] { return convert(*options, global); }; });
}

}  // namespace vitrail::app
