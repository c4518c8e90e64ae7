// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <filesystem>

#include "apps/vitrail/commands/commands.h"
#include "apps/vitrail/commands/described_options.h"
#include "apps/vitrail/explain/run_page.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/output/output_checks.h"
#include "apps/vitrail/output/output_folder.h"
#include "apps/vitrail/output/page.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/image/decode.h"
#include "vitrail/tasks/run.h"
#include "vitrail/train/report/html_internal.h"
#include "vitrail/train/run/run_folder_internal.h"
#include "vitrail/train/run/run_history.h"

namespace vitrail::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTask = "explain";
constexpr const char* kFile = "html";

struct ExplainCommandOptions {
  ModelOptions model;
  std::vector<CLI::Option*> of_model;  // those of `model`
  std::shared_ptr<DescribedOptions> described = std::make_shared<DescribedOptions>();
  std::vector<std::string> images;
  std::string output;
  bool exif = false, force = false;
};

bool is_page(const std::string& path) { return fs::path(path).extension() == ".html"; }

// The page of each image, by its index.
std::vector<std::string> pages_of(const ExplainCommandOptions& options) {
  if (is_page(options.output)) return {options.output};
  UniqueNames names;
  std::vector<std::string> pages;
  for (const std::string& image : options.images)
    pages.push_back((fs::path(options.output) / (names.name_of(image) + ".html")).string());
  return pages;
}

// facts: the JSON of the result.
void print_summary(const std::string& file, const std::string& facts) {
  const auto result = nlohmann::json::parse(facts);
  std::vector<std::string> parts;
  for (const auto& part : result["left_out"])
    parts.push_back(part["what"].get<std::string>() + " (" + part["kept"].get<std::string>() + " kept)");
  const std::string text = fmt::format("{}: {} bytes", escaped(file), result["bytes"].dump());
  if (parts.empty()) return print_output("{}\n", text);
  print_output("{}; not in it: {}; for more: --detail full\n", text, join(parts));
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

// The library's error names an option without its hyphens.
std::unique_ptr<tasks::Request> make_request(const tasks::LoadedModel& model, const ExplainCommandOptions& options) {
  const tasks::Task* const row = tasks::find_task(kTask, model);
  if (!row) throw Error("--model", tasks::models_for_task(kTask), model.family());
  refuse_options_of_other_rows(*row, *options.described, model.family());
  try {
    std::unique_ptr<tasks::Request> request =
        row->request(model, options.described->request, {.model = options.model.path(), .files = {kFile}});
    request->check(1);
    if (request->texts() > 0) request->prepare({});
    return request;
  } catch (const Error& error) {
    const auto is_named = [&](const FieldRow& field) { return error.parts() && field.option == error.parts()->where; };
    if (std::ranges::none_of(rows_of(row->describe), is_named)) throw;
    throw Error("--" + error.parts()->where, error.parts()->expected, error.parts()->got);
  }
}

int explain_images(const ExplainCommandOptions& options, const GlobalOptions& global) {
  read_name_lists(*options.described);
  const std::vector<std::string> pages = pages_of(options);
  if (!is_page(options.output)) create_output_folder(options.output, "the pages");
  const auto model = tasks::open_model(options.model.path(), {.model = session_options_of(options.model, global)});
  const std::unique_ptr<tasks::Request> request = make_request(*model, options);
  for (size_t i = 0; i < pages.size(); ++i) {
    const std::string& path = options.images[i];
    std::vector<tasks::Item> items(1);
    items[0].name = fs::path(path).filename().string();
    items[0].photo = image::read_image(path, {.mode = model->color_mode(), .apply_exif = options.exif});
    tasks::run(*model, *request, items);
    const std::vector<uint8_t> html = request->file(items[0], kFile);
    train::write_text(pages[i], {html.begin(), html.end()});
    print_summary(pages[i], request->json(items[0]));
  }
  if (!is_page(options.output)) write_index(options, pages);
  return 0;
}

// The options of the page itself, of those that tasks describe.
explain::ExplainOptions page_options(const ExplainCommandOptions& options) {
  tasks::Task row;
  row.name = kTask;
  row.describe = [](Fields& fields) {
    explain::ExplainOptions defaults;
    explain::describe_page(fields, defaults);
  };
  refuse_options_of_other_rows(row, *options.described, "a training run");
  explain::ExplainOptions page;
  explain::describe_page(options.described->request, page);
  return page;
}

int explain_training_run(const ExplainCommandOptions& options, const GlobalOptions& global) {
  const explain::ExplainOptions page = page_options(options);
  const explain::LearningPage result = run_page(
      {options.images.front(), {options.images.begin() + 1, options.images.end()}, options.exif}, page, global);
  train::write_text(options.output, result.html);
  print_output("{}: {} bytes\n", escaped(options.output), result.html.size());
  return 0;
}

void check_run(const ExplainCommandOptions& options) {
  for (const CLI::Option* option : options.of_model)
    if (option->count() > 0) throw CLI::ValidationError(option->get_name(), "does not apply to a training run");
  if (!is_page(options.output))
    throw CLI::ValidationError("-o", "expected PAGE.html for a training run, got '" + options.output + "'");
  std::vector<std::string> inputs(options.images.begin() + 1, options.images.end());
  check_outputs({{"-o", options.output, Kind::page}}, inputs, options.force);
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
  for (const auto& [option, texts] : options.described->name_lists)
    inputs.insert(inputs.end(), texts.begin(), texts.end());
  check_outputs(outputs, inputs, options.force);
}

}  // namespace

void add_explain(CLI::App& program, const GlobalOptions& global, Run& run) {
  auto options = std::make_shared<ExplainCommandOptions>();
  CLI::App* command = program.add_subcommand(kTask, "Write a page that explains a forward pass");
  command->footer("Example: vitrail explain photo.jpg -m MODEL -o page.html");
  command
      ->add_option("IMAGE", options->images,
                   "Input images; or the folder of a training run, and images to follow in it")
      ->required();
  const size_t before = command->get_options().size();
  options->model.add_to(*command);
  options->of_model = command->get_options();
  options->of_model.erase(options->of_model.begin(), options->of_model.begin() + static_cast<ptrdiff_t>(before));
  command
      ->add_option("-o,--output", options->output,
                   "PAGE.html: one file with every shape, value, attention map and gradient of the forward pass, which "
                   "a browser opens without a network; or a folder: a page for each image, and index.html")
      ->required();
  for (const tasks::Task* row : rows_named(kTask)) add_described_options(*command, *row, options->described);
  add_force_to(*command, options->force);
  command->add_flag("--exif", options->exif, "Apply the EXIF orientation");
  command->callback([options, &global, &run] {
    if (train::is_run(options->images.front())) {
      check_run(*options);
      run = [options, &global] { return explain_training_run(*options, global); };
      return;
    }
    check_files(*options);
    run = [options, &global] { return explain_images(*options, global); };
  });
}

}  // namespace vitrail::app
