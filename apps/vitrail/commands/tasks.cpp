// SPDX-License-Identifier: Apache-2.0
// The commands of tasks that have none of their own: JSON lines, arrays and rendered images.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "apps/vitrail/commands/commands.h"
#include "apps/vitrail/commands/task_command.h"
#include "apps/vitrail/input/image_stream.h"
#include "apps/vitrail/input/item_files.h"
#include "apps/vitrail/output/output.h"
#include "apps/vitrail/output/output_checks.h"
#include "apps/vitrail/output/output_folder.h"
#include "apps/vitrail/shell/field_options.h"
#include "vitrail/base/atomic_file.h"
#include "vitrail/base/error.h"
#include "vitrail/base/npy.h"
#include "vitrail/base/text.h"
#include "vitrail/tasks/option_model.h"

namespace vitrail::app {
namespace {

namespace fs = std::filesystem;

void create_folder_of(const char* option, const std::string& folder, const std::vector<std::string>& inputs) {
  if (folder.empty()) return;
  check_output_folder(folder, inputs, option);
  create_output_folder(folder, "the results", option);
}

// A file about all images.
class JointFile {
 public:
  JointFile(const std::string& path, const tasks::FileKind& kind) : kind_(kind), out_(path) { out_.write(kind.start); }

  void add(const std::vector<uint8_t>& part) {
    if (part.empty()) return;
    if (std::exchange(has_parts_, true)) out_.write(kind_.separator);
    out_.write(part.data(), part.size());
  }
  void commit() {
    out_.write(kind_.end);
    out_.commit();
  }

 private:
  const tasks::FileKind& kind_;
  AtomicFile out_;
  bool has_parts_ = false;
};

// "photo.jpg: score 0.735, anomalous, farthest 62 62": what a result has besides long lists and objects.  Objects in an
// image are "cat 0.98, dog 0.85", with their identities "cat 0.98 #1".
std::string text_of(const Outcome& outcome, const std::string& json) {
  const auto object = nlohmann::ordered_json::parse(json);
  constexpr size_t kMaxValues = 4;
  std::vector<std::string> parts;
  for (const auto& [key, value] : object.items()) {
    if (key == "path") continue;
    if (value.is_boolean()) parts.push_back((value.get<bool>() ? "" : "not ") + key);
    if (value.is_string()) parts.push_back(key + " " + escaped(value.get<std::string>()));
    if (value.is_number()) parts.push_back(fmt::format("{} {:.4g}", key, value.get<double>()));
    if (value.is_array() && !value.empty() && value.size() <= kMaxValues &&
        std::ranges::all_of(value, &nlohmann::ordered_json::is_number))
      parts.push_back(key + " " + join(value, " "));
    for (const auto& each : value.is_array() ? value : nlohmann::ordered_json::array()) {
      if (each.is_object() && each.contains("label") && each.contains("score"))
        parts.push_back(
            fmt::format("{} {:.2f}", escaped(each["label"].get<std::string>()), each["score"].get<double>()) +
            (each.contains("track") ? fmt::format(" #{}", each["track"].get<int64_t>()) : ""));
    }
  }
  return escaped(outcome.title()) + ": " + (parts.empty() ? "nothing" : join(parts));
}

class TaskRun {
 public:
  TaskRun(TaskOptions& options, std::unique_ptr<tasks::LoadedModel> model, const GlobalOptions& global)
      : options_(options),
        global_(global),
        model_(std::move(model)),
        task_(*tasks::find_task(options.task, *model_)),
        source_(image_source(options.images, model_->color_mode())) {
    for (const auto& [name, path] : options.input_files) {
      if (!path.empty()) files_.emplace(name, ItemFile("--" + name, path));
    }
    read_name_lists(*options.described);
    if (options_.track && !task_.can_track)
      throw CLI::ValidationError("--track", "does not apply to " + model_->family());
    make_request();
    if (options_.track) tracker_.emplace(request_->tracking());
    if (!options_.arrays.empty() && request_->outputs().empty())
      throw CLI::ValidationError("--arrays", "does not apply to " + task_.name + ", which has no arrays");
    for (const tasks::FileKind& kind : task_.files) {
      if (const std::string path = path_of(kind); kind.joint && !path.empty())
        joint_files_.try_emplace(kind.name, path, kind);
    }
  }

  int run();

 private:
  void refuse_other_rows();
  void make_request();
  void compute(tasks::Item& item) const;
  std::string line_of(const Outcome& outcome, const std::string& json) const;
  std::string failure_of(const Outcome& outcome, const std::string& error) const;
  void track(Outcome& outcome);
  void print(Outcome& outcome);
  void write_files(const tasks::Item& item);
  // The folder or the file of a kind; empty if it was not given.
  std::string path_of(const tasks::FileKind& kind) const {
    const auto given = options_.files.find(kind.name);
    return given == options_.files.end() ? "" : given->second;
  }

  TaskOptions& options_;
  const GlobalOptions& global_;
  std::unique_ptr<tasks::LoadedModel> model_;
  const tasks::Task& task_;
  ImageSource source_;
  std::map<std::string, ItemFile> files_;
  std::map<std::string, JointFile> joint_files_;
  std::unique_ptr<tasks::Request> request_;
  std::optional<analysis::ByteTracker> tracker_;
  int64_t last_tracked_ = -1;  // the number of an image
  FileSet images_read_;        // no output replaces one of these
  UniqueNames names_;
  size_t failures_ = 0;
};

// The command has the options of all rows that describe them.
void TaskRun::refuse_other_rows() {
  for (const tasks::Task* row : rows_named(task_.name)) {
    for (const tasks::TaskFile& file : row->input_files) {
      if (files_.contains(file.name) &&
          std::ranges::find(task_.input_files, file.name, &tasks::TaskFile::name) == task_.input_files.end())
        throw CLI::ValidationError("--" + file.name, "does not apply to " + model_->family());
    }
  }
  refuse_options_of_other_rows(task_, *options_.described, model_->family());
}

// The library's error names an option without its hyphens.
void TaskRun::make_request() {
  refuse_other_rows();
  try {
    tasks::Setting setting{.model = options_.model.path(), .render = !options_.render.empty(), .track = options_.track};
    for (const auto& [kind, folder] : options_.files) {
      if (!folder.empty()) setting.files.push_back(kind);
    }
    for (const auto& [name, file] : files_) setting.input_files.insert(name);
    setting.open = [&](const std::string& option, const std::string& path) {
      return tasks::open_option_model(option, path, {.model = session_options_of({}, global_)});
    };
    request_ = task_.request(*model_, options_.described->request, setting);
    request_->check(request_->needs_all() ? static_cast<int64_t>(source_.count.value_or(1)) : 1);
  } catch (const Error& error) {
    const auto names_error = [&](const FieldRow& row) { return error.parts() && row.option == error.parts()->where; };
    const auto kind_has_error = [&](const tasks::FileKind& kind) {
      return error.parts() && kind.name == error.parts()->where;
    };
    const bool is_option = task_.describe && std::ranges::any_of(rows_of(task_.describe), names_error);
    const auto file_has_error = [&](const tasks::TaskFile& file) {
      return error.parts() && file.name == error.parts()->where;
    };
    if (!is_option && std::ranges::none_of(task_.files, kind_has_error) &&
        std::ranges::none_of(task_.input_files, file_has_error))
      throw;
    throw Error("--" + error.parts()->where, error.parts()->expected, error.parts()->got);
  }
  if (source_.frames && request_->needs_all())
    throw CLI::ValidationError("INPUT", "images: this result depends on all of them, and frames have no end");
  if (request_->texts() > 0) request_->prepare({});
}

void TaskRun::compute(tasks::Item& item) const {
  for (const auto& [name, file] : files_) item.input_files[name] = file.content_of(item.name);
  request_->compute(item, model_->encode(item.photo).get(), {});
  item.input_files.clear();
}

int TaskRun::run() {
  const ImageRun run{.passes = request_->passes(),
                     .input_of = [&](const image::Image& photo) { return model_->input_of(photo); },
                     .run = [&](const Tensor& inputs, const infer::Request& pass) { return model_->run(inputs, pass); },
                     .compute = [&](tasks::Item& item) { compute(item); },
                     .keeps_photo = request_->keeps_photo() && !request_->needs_all()};
  std::vector<Outcome> all;
  failures_ += run_images(source_, run, options_.images.batch, global_, [&](Outcome& outcome) {
    if (!request_->needs_all()) return print(outcome);
    outcome.item.photo = {};
    all.push_back(std::move(outcome));
  });
  std::vector<tasks::Item*> items;
  for (Outcome& outcome : all) {
    if (outcome.error.empty()) items.push_back(&outcome.item);
  }
  request_->finish(items);
  for (Outcome& outcome : all) {
    if (outcome.error.empty() && request_->keeps_photo()) outcome.item.photo = source_.read(outcome.index);
    print(outcome);
    outcome.item = {};
  }
  for (auto& [kind, file] : joint_files_) file.commit();
  return failures_ == 0 ? 0 : 1;
}

// A line of the result's JSON.
std::string TaskRun::line_of(const Outcome& outcome, const std::string& json) const {
  return outcome.frame ? json_text(outcome.numbered(nlohmann::ordered_json::parse(json))) : json;
}

// As text, standard error alone has it.
std::string TaskRun::failure_of(const Outcome& outcome, const std::string& error) const {
  return options_.format == "text" ? "" : line_of(outcome, request_->failure_json(outcome.path(), error));
}

// Images are the frames of a video, in their order.
void TaskRun::track(Outcome& outcome) {
  const int64_t number = outcome.frame ? outcome.frame->number : static_cast<int64_t>(outcome.index);
  request_->track(outcome.item, *tracker_, number - std::exchange(last_tracked_, number));
}

void TaskRun::print(Outcome& outcome) {
  std::string line;
  if (outcome.error.empty()) {
    try {
      if (tracker_) track(outcome);
      line = request_->json(outcome.item);
      line = options_.format == "text" ? text_of(outcome, line) : line_of(outcome, line);
      write_files(outcome.item);
    } catch (const Error& error) {
      ++failures_;
      print_error(outcome.message(error.what()));
      line = failure_of(outcome, error.what());
    }
  } else {
    line = failure_of(outcome, outcome.error);
  }
  if (!line.empty()) write_output(line + "\n");
}

void TaskRun::write_files(const tasks::Item& item) {
  if (!source_.frames) images_read_.add(item.name);
  for (const auto& [name, file] : files_) images_read_.add(file.path_of(item.name).string());
  const std::string name = source_.frames ? item.name : names_.name_of(item.name);
  const auto file = [&](const std::string& option, const std::string& folder, const std::string& extension, Kind kind,
                        const std::string& start = {}) {
    const fs::path path = fs::path(folder) / (name + extension);
    check_output({.option = option, .path = path.string(), .kind = kind, .start = start}, images_read_, options_.force);
    return path;
  };
  const auto write = [](const fs::path& path, const std::vector<uint8_t>& bytes) {
    AtomicFile out(path);
    out.write(bytes.data(), bytes.size());
    out.commit();
  };
  const std::vector<tasks::Output> outputs = request_->outputs();
  for (size_t i = 0; i < outputs.size() && !options_.arrays.empty(); ++i) {
    const std::string extension = (outputs.size() > 1 ? "." + outputs[i].name : "") + ".npy";
    const Tensor array = request_->array(item, i);
    const Shape shape = array.shape();
    write_npy(file("--arrays", options_.arrays, extension, Kind::array),
              std::span(shape.begin(), static_cast<size_t>(shape.rank())), array.data<float>());
  }
  if (!options_.render.empty()) write(file("--render", options_.render, ".png", Kind::png), request_->render_png(item));
  for (const tasks::FileKind& kind : task_.files) {
    const std::string path = path_of(kind);
    if (path.empty()) continue;
    const std::vector<uint8_t> content = request_->file(item, kind.name);
    if (kind.joint) {
      joint_files_.at(kind.name).add(content);
    } else {
      const std::string extension = "." + (kind.extension.empty() ? kind.name : kind.extension);
      write(file("--" + kind.name, path, extension, Kind::task_file, kind.start), content);
    }
  }
}

bool has_option(const CLI::App& command, const std::string& name) {
  return command.get_option_no_throw("--" + name) != nullptr;
}

}  // namespace

void add_task_options(CLI::App& command, const std::shared_ptr<TaskOptions>& options) {
  const std::vector<const tasks::Task*> rows = rows_named(options->task);
  for (const tasks::Task* row : rows) {
    for (const tasks::TaskFile& file : row->input_files) {
      if (has_option(command, file.name)) continue;
      command.add_option("--" + file.name, options->input_files[file.name],
                         file.help + "; or a folder with such a file for each image, of its name");
    }
    add_described_options(command, *row, options->described);
  }
  command.add_option("--arrays", options->arrays,
                     "Folder for NAME.npy of each image, or for NAME.OUTPUT.npy if the task has several outputs");
  if (std::ranges::any_of(rows, &tasks::Task::can_render))
    command.add_option("--render", options->render, "Folder for NAME.png of each image");
  if (std::ranges::any_of(rows, &tasks::Task::can_track))
    command.add_flag("--track", options->track,
                     "Identities of objects from frame to frame (ByteTrack); the images are those of a video");
  for (const tasks::Task* row : rows) {
    for (const tasks::FileKind& kind : row->files) {
      if (!has_option(command, kind.name)) command.add_option("--" + kind.name, options->files[kind.name], kind.help);
    }
  }
  if (!has_option(command, "format")) {
    add_field_options(command, [options](Fields& fields) {
      fields.choice({"format", "Output format: json (an object per line), or text"}, options->format, {"json", "text"});
    });
  }
  if (!has_option(command, "force")) add_force_to(command, options->force);
  options->images.add_to(command);
  options->images.frames.add_to(command);
}

std::unique_ptr<tasks::LoadedModel> open_task_model(const TaskOptions& options, const GlobalOptions& global) {
  create_folder_of("--arrays", options.arrays, options.images.inputs);
  create_folder_of("--render", options.render, options.images.inputs);
  std::vector<OutputFile> joint;
  for (const tasks::Task* row : rows_named(options.task)) {
    for (const tasks::FileKind& kind : row->files) {
      const auto given = options.files.find(kind.name);
      if (given == options.files.end() || given->second.empty()) continue;
      const std::string option = "--" + kind.name;
      if (!kind.joint) {
        create_folder_of(option.c_str(), given->second, options.images.inputs);
      } else if (std::ranges::find(joint, option, &OutputFile::option) == joint.end()) {
        joint.push_back({.option = option, .path = given->second, .kind = Kind::task_file, .start = kind.start});
      }
    }
  }
  check_outputs(joint, options.images.inputs, options.force);
  auto model = tasks::open_model(options.model.path(), {.model = session_options_of(options.model, global)});
  if (!tasks::find_task(options.task, *model))
    throw Error("--model", tasks::models_for_task(options.task), model->family());
  return model;
}

int run_task(TaskOptions& options, std::unique_ptr<tasks::LoadedModel> model, const GlobalOptions& global) {
  return TaskRun(options, std::move(model), global).run();
}

CLI::App* add_task_command(CLI::App& program, const std::string& task, const GlobalOptions& global, Run& run) {
  const auto options = std::make_shared<TaskOptions>(TaskOptions{.task = task});
  const tasks::Task& row = *rows_named(task).front();
  CLI::App* command = program.add_subcommand(task, row.help);
  command->footer("Example: vitrail " + task + " -m MODEL photo.jpg > results.jsonl");
  options->images.add_inputs_to(*command)->required();
  if (row.model_options) {
    options->model.add_to(*command);
  } else {
    command->add_option("-m,--model", options->model.model, "Model: " + tasks::models_for_task(task));
  }
  add_task_options(*command, options);
  command->callback([options, command, &global, &run] {
    if (!command->get_subcommands().empty()) return;
    if (options->images.inputs.empty()) throw CLI::RequiredError("INPUT");
    options->images.frames.check(*command, options->images.inputs);
    run = [options, &global] { return run_task(*options, open_task_model(*options, global), global); };
  });
  return command;
}

void add_tasks(CLI::App& program, const GlobalOptions& global, Run& run) {
  for (const std::string& task : tasks::task_names()) {
    const auto has_name = [&](const CLI::App* command) { return command->get_name() == task; };
    if (std::as_const(program).get_subcommands(has_name).empty()) add_task_command(program, task, global, run);
  }
}

}  // namespace vitrail::app
