// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <filesystem>

#include "apps/vitrail/commands/commands.h"
#include "apps/vitrail/commands/zero_shot_options.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/output/output_checks.h"
#include "apps/vitrail/output/output_folder.h"
#include "apps/vitrail/output/page.h"
#include "apps/vitrail/shell/field_options.h"
#include "vitrail/base/digest_internal.h"
#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/base/text.h"
#include "vitrail/explain/explain.h"
#include "vitrail/train/report/html_internal.h"
#include "vitrail/train/run/run_folder_internal.h"

namespace vitrail::app {
namespace {

namespace fs = std::filesystem;

struct ExplainCommandOptions {
  ModelOptions model;
  explain::ExplainOptions explain;
  std::vector<std::string> images;
  std::string output, labels;
  bool exif = false, force = false;
};

bool is_page(const std::string& path) { return fs::path(path).extension() == ".html"; }

// The library's error names a field, the command line's its option.
void check_class(const ExplainCommandOptions& options, const Model& model) {
  try {
    explain::check_explain(model, options.explain);
  } catch (const Error& error) {
    throw Error("--" + error.parts()->where, error.parts()->expected, error.parts()->got);
  }
}

// The page of each image, by its index.
std::vector<std::string> pages_of(const ExplainCommandOptions& options) {
  if (is_page(options.output)) return {options.output};
  UniqueNames names;
  std::vector<std::string> pages;
  for (const std::string& image : options.images)
    pages.push_back((fs::path(options.output) / (names.name_of(image) + ".html")).string());
  return pages;
}

void print_summary(const std::string& file, const explain::LearningPage& page, const ExplainCommandOptions& options) {
  std::string text = fmt::format("{}: {} bytes", escaped(file), page.html.size());
  if (page.left_out.empty()) return print_output("{}\n", text);
  std::vector<std::string> parts;
  for (const auto& [what, kept] : page.left_out) parts.push_back(what + " (" + kept + " kept)");
  print_output("{}; not in it: {}; all values: --detail {}\n", text, join(parts),
               options.explain.detail == explain::Detail::small ? "standard or full" : "full");
}

// A page of links to the pages of a folder.
void write_index(const ExplainCommandOptions& options, const std::vector<std::string>& pages) {
  std::string html = train::page_begin("vitrail explain", kPageStyle) + "<ul>\n";
  for (size_t i = 0; i < pages.size(); ++i) {
    const std::string name = train::escape_html(fs::path(pages[i]).filename().string());
    html += str("<li><a href=\"", name, "\">", train::escape_html(options.images[i]), "</a></li>\n");
  }
  train::write_text((fs::path(options.output) / "index.html").string(), html + "</ul>\n" + train::kPageEnd);
}

// The model; of images and texts if --labels are texts.
struct OpenedForPages {
  std::unique_ptr<DualModel> dual;
  std::unique_ptr<Model> model;
  std::vector<std::string> texts = {};
  Tensor embeddings = {};
  const Model& images() const { return dual ? dual->images() : *model; }
};

OpenedForPages open_for_pages(const ExplainCommandOptions& options, const models::OpenedModel& opened,
                              const GlobalOptions& global) {
  vitrail::ModelOptions session = session_options_of(options.model, global);
  OpenedForPages result;
  if (opened.config.text && !options.labels.empty()) {
    result.dual = std::make_unique<DualModel>(opened, session);
    result.texts = labels_of(options.labels);
    result.embeddings = result.dual->embed_labels(result.texts);
    return result;
  }
  session.labels = options.labels;
  result.model = std::make_unique<Model>(opened, session);
  return result;
}

int explain_images(const ExplainCommandOptions& options, const GlobalOptions& global) {
  const models::OpenedModel opened = options.model.open(models::ModelFiles(options.model.path()));
  const OpenedForPages pages_model = open_for_pages(options, opened, global);
  const Model& model = pages_model.images();
  check_class(options, model);
  const std::vector<std::string> pages = pages_of(options);
  if (!is_page(options.output)) create_output_folder(options.output, "the pages");
  for (size_t i = 0; i < pages.size(); ++i) {
    const std::string& path = options.images[i];
    const std::string content = read_text_file(path);
    const auto bytes = std::as_bytes(std::span(content));
    const image::Image photo = model.read(path, {.apply_exif = options.exif});
    explain::ExplainedImage image{.photo = photo,
                                  .name = fs::path(path).filename().string(),
                                  .sha256 = sha256(bytes),
                                  .model = options.model.path(),
                                  .command = global.command_line};
    if (pages_model.dual)
      image.texts = explain::compare_texts(*pages_model.dual, photo, pages_model.texts, pages_model.embeddings);
    const explain::LearningPage page = explain::explain(model, opened, image, options.explain);
    train::write_text(pages[i], page.html);
    print_summary(pages[i], page, options);
  }
  if (!is_page(options.output)) write_index(options, pages);
  return 0;
}

void check_files(const ExplainCommandOptions& options) {
  for (const std::string& image : options.images)
    if (image == "-") throw CLI::ValidationError("IMAGE", "expected a file, got '-' (for standard input: /dev/stdin)");
  if (is_page(options.output) && options.images.size() > 1)
    throw CLI::ValidationError(
        "-o", str("expected a folder for the pages of ", options.images.size(), " images, got '", options.output, "'"));
  std::vector<OutputFile> outputs;
  for (const std::string& page : pages_of(options)) outputs.push_back({"-o", page, Kind::page});
  if (!is_page(options.output))
    outputs.push_back({"-o", (fs::path(options.output) / "index.html").string(), Kind::page});
  std::vector<std::string> inputs = options.model.files();
  inputs.insert(inputs.end(), options.images.begin(), options.images.end());
  inputs.push_back(options.labels);
  check_outputs(outputs, inputs, options.force);
}

}  // namespace

void add_explain(CLI::App& program, const GlobalOptions& global, Run& run) {
  auto options = std::make_shared<ExplainCommandOptions>();
  CLI::App* command = program.add_subcommand("explain", "Write a page that explains a forward pass");
  command->footer("Example: vitrail explain photo.jpg -m MODEL -o page.html");
  command->add_option("IMAGE", options->images, "Input images")->required();
  options->model.add_to(*command);
  command
      ->add_option("-o,--output", options->output,
                   "PAGE.html: one file with every shape, value, attention map and gradient of the forward pass, which "
                   "a browser opens without a network; or a folder: a page for each image, and index.html")
      ->required();
  add_field_options(*command, explain::describe_explain, options->explain);
  accept_dash(
      *command->add_option("--labels", options->labels,
                           "Class names, as for classify; of a model of images and texts the texts, as for zeroshot"));
  add_force_to(*command, options->force);
  command->add_flag("--exif", options->exif, "Apply the EXIF orientation");
  command->callback([options, &global, &run] {
    check_files(*options);
    run = [options, &global] { return explain_images(*options, global); };
  });
}

}  // namespace vitrail::app
