// SPDX-License-Identifier: Apache-2.0
// The command of the task, and `anomaly fit`, which makes the bank that it takes.
#include "apps/vitrail/commands/commands.h"
#include "apps/vitrail/commands/task_command.h"
#include "apps/vitrail/input/image_stream.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/output/output_checks.h"
#include "apps/vitrail/output/table_format.h"
#include "apps/vitrail/shell/field_options.h"
#include "vitrail/anomaly/fit.h"
#include "vitrail/anomaly/patches.h"
#include "vitrail/anomaly/rotation.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"

namespace vitrail::app {
namespace {

namespace fs = std::filesystem;

struct FitOptions {
  ModelOptions model;  // its name alone
  std::string output;
  anomaly::BankOptions bank;
  std::optional<std::array<int64_t, 2>> image_size;
  StreamOptions images;
  TableFormat format;
  bool force = false;
};

// A bank in another folder finds its model again.
std::string recorded_path(const std::string& model) {
  std::error_code error;
  if (!fs::exists(model, error)) return model;
  const fs::path path = fs::absolute(model, error);
  return error ? model : path.lexically_normal().string();
}

// Each image at every angle, one after the other.
ImageSource rotated(ImageSource source, int64_t rotations) {
  if (rotations == 1) return source;
  const auto angles = static_cast<size_t>(rotations);
  ImageSource all = source;
  if (source.count) all.count = *source.count * angles;
  all.path = [path = std::move(source.path), angles](size_t i) { return path(i / angles); };
  all.read = [read = std::move(source.read), angles](size_t i) {
    const image::Image image = read(i / angles);
    return anomaly::rotated(image, 360.0 * static_cast<double>(i % angles) / static_cast<double>(angles));
  };
  return all;
}

int fit(const FitOptions& options, const GlobalOptions& global) {
  const std::string path = options.model.path();
  const models::ModelFiles files(path);
  const Model model(anomaly::open_model(files, options.image_size), session_options_of({}, global));
  anomaly::Bank bank{.options = options.bank,
                     .model = recorded_path(path),
                     .digest = anomaly::digest_of(files),
                     .image_size = model.config().vit.img_size};
  std::vector<anomaly::Patches> images;
  const ImageSource source = rotated(image_source(options.images, model.color_mode()), bank.options.rotations);
  const size_t failures = run_images(source, model, anomaly::feature_request(bank.options), options.images.batch,
                                     global, [&](const Outcome& outcome) {
                                       if (outcome.error.empty())
                                         images.push_back(anomaly::patches_of(outcome.result(), bank.options));
                                     });
  if (images.empty()) throw Error("INPUT", "at least one good image that can be read", "none");
  const auto whole = std::ranges::count_if(images, [](const auto& image) { return image.foreground.empty(); });
  if (bank.options.mask != anomaly::Mask::none && whole > 0)
    print_warning(fmt::format("--mask: {} of {} images have no foreground, so that all of their patches count", whole,
                              images.size()));
  const ComputeTeam team(model.session().threads());
  anomaly::fit(images, bank);
  anomaly::write_bank(options.output, bank);
  if (!bank.threshold)
    print_warning(fmt::format("{} images are too few to hold some out: the bank has no threshold", bank.images));
  nlohmann::ordered_json report{{"images", bank.images},
                                {"failed_images", failures / static_cast<size_t>(bank.options.rotations)},
                                {"patches", bank.patches.size(0)}};
  if (bank.threshold) report.update({{"threshold", *bank.threshold}, {"pixel_threshold", *bank.pixel_threshold}});
  print_result(report, options.format);
  return failures == 0 ? 0 : 1;
}

void add_fit(CLI::App& anomaly, const GlobalOptions& global, Run& run) {
  auto options = std::make_shared<FitOptions>();
  CLI::App* command = anomaly.add_subcommand("fit", "Make a bank of good images");
  command->footer("Example: vitrail anomaly fit good/ -o bolts.bank");
  options->images.add_inputs_to(*command)->required();
  options->model.add_name_to(*command);
  command->add_option("-o,--output", options->output, "The bank, one file")->required();
  add_field_options(*command, anomaly::describe_options, options->bank);
  add_field_options(*command, [options](Fields& fields) {
    fields.size({"image_size", "Height and width of the model's input (default: the model's)"}, options->image_size);
  });
  add_force_to(*command, options->force);
  options->images.add_to(*command);
  options->format.add_to(*command);
  command->callback([options, &global, &run] {
    std::vector<std::string> inputs = options->images.inputs;
    inputs.push_back(options->model.model);
    check_outputs({{"-o", options->output, Kind::weights}}, inputs, options->force);
    run = [options, &global] { return fit(*options, global); };
  });
}

}  // namespace

void add_anomaly(CLI::App& program, const GlobalOptions& global, Run& run) {
  CLI::App* command = add_task_command(program, "anomaly", global, run);
  command->get_option("INPUT")->required(false);  // the first word would be one, not the subcommand
  add_fit(*command, global, run);
}

}  // namespace vitrail::app
