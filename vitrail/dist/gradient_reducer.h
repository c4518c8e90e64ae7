#pragma once
// Averages gradients over all processes while the backward pass still runs (Li et al. 2020, "PyTorch Distributed").
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "vitrail/dist/communicator.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::dist {

struct ReducerOptions {
  int64_t bucket_bytes = int64_t{4} << 20;  // gradients travel together until they are this much
  bool average = true;                      // else the sum
};

// Of one pass, or of all since the reducer was made.
struct ReducerTimes {
  int64_t buckets = 0, bytes = 0;
  double communication = 0;  // seconds in which the communication thread was exchanging
  double overlapped = 0;     // of these, while the backward pass still ran
  double waited = 0;         // seconds that finish() waited
};

// Buckets are filled in the reverse order of the parameters (the order in which a backward pass ends them), fixed when
// the reducer is made and sent in that order, whatever the order in which gradients come: all processes do the same.
// One thread of the reducer's own communicates; between begin() and finish() nobody else may use the communicator.
class GradientReducer {
 public:
  // `parameters`: only their shapes and dtypes (f32 or f64) count; the same in every process.
  GradientReducer(std::shared_ptr<Communicator> communicator, const std::vector<Tensor>& parameters,
                  const ReducerOptions& options = {});
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  void begin();  // before the backward pass
  // The gradient of parameter `index` is final; contiguous, and its memory is overwritten with the average before
  // finish() returns.  Called once for each parameter that has a gradient, from one thread.
  void ready(size_t index, const Tensor& gradient);
  // Sends what is left (parameters without a gradient count as zeros) and waits.  Rethrows what failed on the thread.
  void finish();

  const ReducerTimes& last() const { return last_; }
  const ReducerTimes& total() const { return total_; }
  size_t buckets() const { return buckets_.size(); }

 private:
  struct Slot {
    size_t bucket;
    int64_t offset, count;  // elements within the bucket
  };
  struct Bucket {
    DType dtype;
    int64_t count = 0;  // elements
    std::vector<size_t> members;
    Tensor data;
    size_t missing = 0;
  };
  void run();
  void reduce(Bucket& bucket);
  void send_complete(std::unique_lock<std::mutex>& lock);

  std::shared_ptr<Communicator> communicator_;
  ReducerOptions options_;
  std::vector<Slot> slots_;
  std::vector<Bucket> buckets_;
  std::vector<Tensor> gradients_;
  bool active_ = false;
  ReducerTimes last_, total_;

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  size_t next_ = 0, sent_ = 0, reduced_ = 0;  // buckets handed over in order; taken; finished
  bool backward_running_ = false, stop_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace vitrail::dist
