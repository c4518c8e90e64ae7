// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tasks: what one wants of images and a model, such as class scores, embeddings, or masks of prompts.
//
// A task is a row of tasks(): a name, what it needs of a model, and a function that reads the options of a request. The
// request then says how an image runs and what its result looks like.  The command line, the server, the C interface
// and Python know no more of a task than this header, so that a task is a folder of its own and one row.
//
//   reading        request = task.request(model, options, setting), then request->check(images)
//   once           request->prepare(progress): what does not depend on images, such as embeddings of labels
//   each image     request->passes(): forward passes of the model, in batches with the images of other requests;
//                  without any, request->compute(item, encoding): the image alone, with what the model has encoded of
//                  it
//   each frame     request->track(item, …), of a video: identities of its objects, by the table's can_track
//   once           request->finish(items): what depends on all images, such as a common PCA
//   each result    request->json(item), request->array(item, i) as outputs() describes, request->render(item)
#include <any>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "vitrail/analysis/byte_tracker.h"
#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/image/image.h"
#include "vitrail/infer/session.h"
#include "vitrail/tasks/request_options.h"

namespace vitrail::tasks {

class LoadedModel;

// A result of an image: a contiguous f32 tensor.
struct Output {
  std::string name;
  Shape shape;                // for one image
  bool class_values = false;  // an element for each class
};

// What a model computes once of an image for all requests about it.  A server keeps those of recent images.
struct ImageEncoding {
  virtual ~ImageEncoding() = default;
  virtual size_t bytes() const = 0;
  int64_t width = 0, height = 0;  // the size of the image
};

// The contents of the files that come with an image, by their options.
using FilesOfItem = std::map<std::string, std::shared_ptr<const std::string>>;

using EncodingPointer = std::shared_ptr<const ImageEncoding>;

// An image on its way through a request.
struct Item {
  std::string name = {};                          // as results and errors name it
  image::Image photo = {};                        // if keeps_photo(); kept for render() if it is wanted
  FilesOfItem input_files = {};                   // those of Task::input_files, for compute()
  int64_t width = 0, height = 0;                  // the size of the image
  std::vector<std::vector<Tensor>> results = {};  // results of each of passes(), without the batch axis
  std::any value = {};                            // what compute() and finish() keep
  // For compute(): what a further model (Setting::open) has encoded of the image, which a server keeps.  Empty: its
  // encode() of the photo; see encoding_by().
  std::function<EncodingPointer(const LoadedModel& model)> encode = {};
};

// A further kind of file of a result, such as a point cloud.
struct FileKind {
  std::string name;            // that of the option: "ply"
  std::string help;            // the option in one line
  std::string start;           // the first bytes of each file; empty: any
  std::string extension = {};  // that of the files; empty: the name
  std::string media_type = "application/octet-stream";
  // One file has all images: `start`, what Request::file() gives of each, with `separator` between those that are not
  // empty, and `end`.
  bool joint = false;
  std::string separator = {}, end = {};
};

// What a request comes with beside its options.
struct Setting {
  std::string model;                       // the model's name, for errors
  bool render = false;                     // render() is called
  bool track = false;                      // track() is called
  std::vector<std::string> files = {};     // file() is called for these kinds
  int64_t max_pixels = INT64_MAX;          // the limit of an image among the options
  std::set<std::string> input_files = {};  // the options of Task::input_files that each image comes with
  // Opens a further model, which an option of the request names: by its path (open_option_model()), or as the server
  // does.  Throws Error.  Empty: by its path, with the defaults of OpenOptions.
  std::function<std::shared_ptr<const LoadedModel>(const std::string& option, const std::string& name)> open = {};
};

// Results that would exhaust memory.
class TooLarge : public Error {
 public:
  using Error::Error;
};

constexpr int64_t kMaxResultValues = int64_t{1} << 24;  // 300 MB of JSON

// Throws TooLarge if `count` times `values` is above `max`.
void check_result_size(int64_t count, int64_t values, int64_t max = kMaxResultValues);

// Throws Error naming `where` for a NaN or an infinity, which JSON cannot write.
void require_finite(const std::string& where, const Tensor& values);

// A task with the options of one request.  Const functions may be called from several threads.  The model outlives it.
class Request {
 public:
  virtual ~Request() = default;

  // Throws Error for options that the model does not have, and TooLarge.
  virtual void check(int64_t /*images*/) const {}
  // The texts that prepare() embeds: with many of them it calls `progress` from time to time, which may throw.
  virtual int64_t texts() const { return 0; }
  virtual void prepare(const ProgressCallback& /*progress*/) {}

  virtual std::vector<infer::Request> passes() const { return {}; }
  virtual bool keeps_photo() const { return false; }  // compute() or render() needs the image's pixels
  virtual bool is_long() const { return false; }      // compute() calls `progress` from time to time
  // encoding: LoadedModel::encode() of the image; null if the model gives none.  Throws Error.
  virtual void compute(Item& /*item*/, const ImageEncoding* /*encoding*/, const ProgressCallback& /*progress*/) const {}
  // With can_track: gives the objects of a video's frame the identities that a tracker with the options of tracking()
  // finds.  frames: as of ByteTracker::update().
  virtual analysis::ByteTrackerOptions tracking() const { return {}; }
  virtual void track(Item& /*item*/, analysis::ByteTracker& /*tracker*/, int64_t /*frames*/) const {}
  virtual bool needs_all() const { return false; }  // finish() uses the results of all images
  virtual void finish(const std::vector<Item*>& /*items*/) const {}

  // A JSON object in one line.  Throws Error for a result that it cannot hold.
  virtual std::string json(const Item& item) const = 0;
  virtual std::string failure_json(const std::string& name, const std::string& error) const;  // {"path", "error"}
  virtual std::vector<Output> outputs() const { return {}; }
  virtual Tensor array(const Item& /*item*/, size_t /*output*/) const { return {}; }
  virtual image::Image render(const Item& /*item*/) const { return {}; }
  virtual std::vector<uint8_t> render_png(const Item& item) const;  // the file of render(), or of 16-bit values
  virtual std::vector<uint8_t> file(const Item& /*item*/, const std::string& /*kind*/) const { return {}; }
};

// An option whose value is a file for each image, such as its trimap.
struct TaskFile {
  std::string name, help;
};

// Rows may share a name, each for other models: a request goes to the first one that fits its model.
struct Task {
  std::string name;       // that of the route and of the command: "classify"
  std::string model;      // what it needs: "a Vision Transformer"
  std::string help = {};  // the command in one line
  // The options with their defaults, as request() reads them, for a task without a command of its own.
  void (*describe)(Fields& fields) = nullptr;
  std::vector<TaskFile> input_files = {};
  std::vector<std::string> name_lists = {};  // options of names, which the command also takes as a file of them
  bool can_render = false, can_track = false;
  std::vector<FileKind> files = {};
  bool model_options = true;  // the command has the options of a model's configuration and preprocessing
  bool (*fits)(const LoadedModel& model) = nullptr;
  // Takes the options of the request.  Throws Error for values out of range.
  std::unique_ptr<Request> (*request)(const LoadedModel& model, RequestOptions& options,
                                      const Setting& setting) = nullptr;
};

// For a row's `describe`: the fields of a struct with the values of its members' initialisers.
template <class Options, void (*describe)(Fields&, Options&)>
void describe_defaults(Fields& fields) {
  Options options;
  describe(fields, options);
}

// All tasks; those of add_task() are the last.
const std::vector<Task>& tasks();
std::vector<std::string> task_names();                                     // each once
const Task* find_task(const std::string& name, const LoadedModel& model);  // null: no row of this name fits
std::string models_for_task(const std::string& name);  // what its rows need: "one of Segment Anything, or …"
// Adds a task of another program, before the first model is opened.  Throws Error for a name that another task has.
void add_task(Task task);

}  // namespace vitrail::tasks
