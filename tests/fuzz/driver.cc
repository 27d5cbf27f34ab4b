// SPDX-License-Identifier: Apache-2.0
// Runs a program in libFuzzer's form, for compilers without libFuzzer (with one: clang++
// -fsanitize=fuzzer and this file left out). Without arguments: every input of its corpus, then
// mutations of them, bounded in number and time; TAP. With arguments: replays these files. Inputs
// run in a child process; one that kills it, or that takes too long, is kept in a file that is
// named. See knobs.h for seed and effort.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>

#include "inputs.h"
#include "knobs.h"
#include "mutator.h"
#include "tap.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace crosstie::fuzz {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kHang = std::chrono::seconds(20);

// What the child is at; survives it.
struct Shared {
  std::atomic<uint64_t> runs;
  size_t bytes;
  char input[kMostInput];
};

Shared* make_shared_memory() {
  void* const memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : new (memory) Shared{};
}

void run(Shared& shared, const std::string& input) {
  shared.bytes = std::min(input.size(), kMostInput);
  std::memcpy(shared.input, input.data(), shared.bytes);
  shared.runs++;
  // A copy of just its length, so that the sanitizer sees a read beyond.
  const std::vector<uint8_t> copy(shared.input, shared.input + shared.bytes);
  LLVMFuzzerTestOneInput(copy.data(), copy.size());
}

// "" if the child came to its end.
std::string watch(pid_t child, const Shared& shared) {
  uint64_t seen = 0;
  auto since = Clock::now();
  for (int status = 0;;) {
    if (waitpid(child, &status, WNOHANG) == child) {
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
      return WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                                 : fmt::format("exit status {}", WEXITSTATUS(status));
    }
    if (const uint64_t runs = shared.runs; runs != seen) seen = runs, since = Clock::now();
    if (Clock::now() - since > kHang) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return fmt::format("no end within {} s", kHang.count());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

// Runs `body` in a child; the failing input's file is in the verdict.
template <class Body>
std::string in_child(const std::string& target, Shared& shared, Body&& body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    body();
    std::fflush(nullptr);
    std::exit(0);  // the address sanitizer looks for leaks at exit
  }
  const std::string wrong = watch(child, shared);
  if (wrong.empty()) return "";
  return fmt::format("{}; the input is kept as {}", wrong,
                     keep_input(target, {shared.input, shared.bytes}));
}

void mutate_and_run(const Inputs& inputs, Shared& shared, uint64_t seed) {
  Mutator mutator(inputs, seed);
  const auto until = Clock::now() + std::chrono::seconds(test::rounds(20));
  for (int i = 0; i < test::rounds(inputs.runs) && Clock::now() < until; i++)
    run(shared, mutator.next());
}

int replay(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    const std::string input = read_input(file);
    fmt::print(stderr, "{}: {} bytes\n", file, input.size());
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  }
  return 0;
}

int fuzz(const std::string& target) {
  test::Tap tap;
  const Inputs inputs = inputs_of(target);
  Shared* const shared = make_shared_memory();
  if (!shared) return 99;
  const std::string corpus = in_child(target, *shared, [&] {
    for (const std::string& input : inputs.corpus) run(*shared, input);
  });
  tap.check(corpus.empty() && !inputs.corpus.empty(),
            fmt::format("{}: the inputs of its corpus do no harm", target),
            inputs.corpus.empty() ? "there are none; is $srcdir set?" : corpus);
  const uint64_t before = shared->runs, seed = test::test_seed();
  const auto start = Clock::now();
  const std::string wrong =
      in_child(target, *shared, [&] { mutate_and_run(inputs, *shared, seed); });
  const std::chrono::duration<double> took = Clock::now() - start;
  tap.check(wrong.empty(), fmt::format("{}: mutated inputs do no harm", target),
            fmt::format("{} (CROSSTIE_TEST_SEED={})", wrong, seed));
  fmt::print("# {} inputs in {:.2f} s\n", shared->runs - before, took.count());
  return tap.finish();
}

}  // namespace
}  // namespace crosstie::fuzz

int main(int argc, char** argv) {
  // What begins with an option is for other harnesses.
  if (argc > 1 && argv[1][0] != '-') return crosstie::fuzz::replay({argv + 1, argv + argc});
  // "…/nccl_xml.t"
  return crosstie::fuzz::fuzz(std::filesystem::path(argv[0]).stem().native());
}
