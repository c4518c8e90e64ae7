// SPDX-License-Identifier: Apache-2.0
// mpirun -n 2 vitrail train, as a user runs it, stops it and loses a process of it.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "tests/train/processes.h"
#include "vitrail/train/checkpoint.h"

namespace vitrail::train {
namespace {

// mpirun refuses root and more processes than cores unless it is told; containers forbid its way of copying between
// processes.
void allow_mpirun() {
  for (const auto& [name, value] : {std::pair{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                    {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                                    {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                                    {"OMPI_MCA_btl_vader_single_copy_mechanism", "none"},
                                    {"OMPI_MCA_hwloc_base_binding_policy", "none"},
                                    {"ASAN_OPTIONS", "detect_leaks=0"}})
    ::setenv(name, value, 1);
}

class MpiTraining : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(testing::program().parent_path() / "vitrail_mpi.so")) GTEST_SKIP() << "built without MPI";
    if (std::system("command -v mpirun >/dev/null") != 0) GTEST_SKIP() << "mpirun is not installed";
    allow_mpirun();
    root_ = testing::scratch_folder();
    write_file(root_ / "recipe.json", tiny_recipe(make_pictures()));
  }

  // What mpirun is given to train in a folder under root_.
  std::vector<std::string> command(int processes, const std::string& run, const std::vector<std::string>& more) const {
    std::vector<std::string> line{"timeout",
                                  "120",
                                  "mpirun",
                                  "-n",
                                  std::to_string(processes),
                                  testing::program().string(),
                                  "train",
                                  (root_ / "recipe.json").string(),
                                  "-o",
                                  (root_ / run).string(),
                                  "--threads",
                                  "1",
                                  "--resume"};
    line.insert(line.end(), more.begin(), more.end());
    return line;
  }

  // Starts a command whose both streams go to root_/output.
  pid_t start(std::vector<std::string> line) const {
    std::vector<char*> argv;
    for (std::string& argument : line) argv.push_back(argument.data());
    argv.push_back(nullptr);
    const std::string output = (root_ / "output").string();
    std::fflush(stdout);  // or the child would write what waits there once more
    const pid_t child = ::fork();
    if (child != 0) return child;
    const bool told = std::freopen(output.c_str(), "w", stdout) && ::dup2(STDOUT_FILENO, STDERR_FILENO) >= 0 &&
                      std::freopen("/dev/null", "r", stdin);
    if (told) ::execvp(argv[0], argv.data());
    ::_exit(127);
  }

  static int wait_for(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  int run(const std::vector<std::string>& line) const { return wait_for(start(line)); }
  std::string output() const { return read_text(root_ / "output"); }

  // Waits until a run has written so many rows, or a minute.
  void wait_for_rows(const std::string& run, size_t rows) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (timeless_rows(root_ / run / "metrics.csv").size() < rows && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  fs::path root_;
};

// The process that trains in `run` under this number, by what mpirun has put into its environment; 0 when there is
// none.
pid_t process_of(const fs::path& run, int rank) {
  const std::string number = std::string("\0OMPI_COMM_WORLD_RANK=", 22) + std::to_string(rank) + '\0';
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const pid_t process = std::atoi(entry.path().filename().c_str());
    if (process > 0 && contains(read_text(entry.path() / "cmdline"), run.string()) &&
        contains('\0' + read_text(entry.path() / "environ"), number))
      return process;
  }
  return 0;
}

TEST_F(MpiTraining, GivesTheLossesOfOneProcessWithTheWholeBatch) {
  ASSERT_EQ(run(command(1, "one", {})), 0) << output();
  ASSERT_EQ(run(command(2, "two", {"--set", "batch_size=4"})), 0) << output();
  EXPECT_TRUE(contains(output(), "2 processes, 8 images a batch")) << output();
  EXPECT_TRUE(contains(read_text(root_ / "two/summary.json"), "overlapped_seconds"));
  expect_same_losses(root_ / "one", root_ / "two");
}

TEST_F(MpiTraining, EndsWhenAProcessDiesAndGoesOnFromTheLastCheckpoint) {
  const std::vector<std::string> settings{"--set", "epochs=400", "--set", "batch_size=4"};
  const pid_t mpirun = start(command(2, "run", settings));
  wait_for_rows("run", 12);
  const pid_t victim = process_of(root_ / "run", 1);
  ASSERT_GT(victim, 0) << output();
  ::kill(victim, SIGKILL);
  const int status = wait_for(mpirun);
  EXPECT_NE(status, 0);
  EXPECT_NE(status, 124) << "the run went on until the time limit";
  EXPECT_TRUE(contains(output(), "rank 1")) << output();
  const Position before = load_latest(root_ / "run/checkpoints/last.safetensors").position;
  EXPECT_GE(before.step, 8);  // each second step is saved, and the ninth was written down
  // Alone, with the epochs that are left of one more.
  const std::string epochs = "epochs=" + std::to_string(before.epoch + 1);
  EXPECT_EQ(run(command(1, "run", {"--set", epochs, "--set", "batch_size=4", "--allow-changes"})), 0) << output();
  EXPECT_TRUE(contains(output(), "processes: 2 → 1")) << output();
}

TEST_F(MpiTraining, StopsTogetherWhenOneProcessIsTold) {
  const pid_t mpirun = start(command(2, "run", {"--set", "epochs=400", "--set", "checkpoint.every_steps=0"}));
  wait_for_rows("run", 4);
  const pid_t told = process_of(root_ / "run", 1);
  ASSERT_GT(told, 0) << output();
  ::kill(told, SIGTERM);
  EXPECT_EQ(wait_for(mpirun), 1) << output();
  EXPECT_TRUE(contains(output(), "--resume goes on")) << output();
  EXPECT_GT(load_checkpoint(root_ / "run/checkpoints/last.safetensors").position.step, 0);
}

TEST_F(MpiTraining, AnErrorOfOneProcessSaysWhose) {
  ASSERT_NE(run(command(2, "run", {"--set", "batch_size=3"})), 0);
  EXPECT_TRUE(contains(output(), "process 1: loader.batch_size: expected an even number")) << output();
}

}  // namespace
}  // namespace vitrail::train
