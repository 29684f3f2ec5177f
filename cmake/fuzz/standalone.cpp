// Runs a fuzz target without a fuzzing engine: over files and folders of inputs, then over mutations of them.
//
//   fuzz_<target> [--mutations N] [--seed S] PATH...

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Input = std::vector<std::uint8_t>;

void load(const std::filesystem::path& path, std::vector<Input>& inputs) {
    if (std::filesystem::is_directory(path)) {
        for (const auto& entry : std::filesystem::directory_iterator(path))
            load(entry.path(), inputs);
        return;
    }
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        std::fprintf(stderr, "cannot read %s\n", path.c_str());
        std::exit(2);
    }
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

/// One to eight changes: bits, bytes, lengths, chunks moved within the input.
Input mutated(Input input, std::mt19937& random) {
    for (auto changes = random() % 8 + 1; changes > 0; --changes) {
        if (input.empty()) input.push_back(0);
        const std::size_t at = random() % input.size();
        switch (random() % 6) {
            case 0:
                input[at] ^= static_cast<std::uint8_t>(1U << random() % 8);
                break;
            case 1:
                input[at] = static_cast<std::uint8_t>(random());
                break;
            case 2:
                input[at] = random() % 2 != 0 ? 0xFF : 0x00;
                break;
            case 3:
                input.insert(input.begin() + static_cast<std::ptrdiff_t>(at),
                             static_cast<std::uint8_t>(random()));
                break;
            case 4:
                input.resize(at);
                break;
            default:
                input.insert(input.end(), input.begin() + static_cast<std::ptrdiff_t>(at), input.end());
                if (input.size() > 4096) input.resize(4096);
        }
    }
    return input;
}

void run(const Input& input) {
    LLVMFuzzerTestOneInput(input.data(), input.size());
}

}  // namespace

int main(int count, char** arguments) {
    std::vector<Input> inputs(1);
    unsigned long mutations = 0, seed = 1;
    for (int n = 1; n < count; ++n) {
        const std::string argument = arguments[n];
        if (argument == "--mutations" && n + 1 < count) {
            mutations = std::strtoul(arguments[++n], nullptr, 10);
        } else if (argument == "--seed" && n + 1 < count) {
            seed = std::strtoul(arguments[++n], nullptr, 10);
        } else {
            load(argument, inputs);
        }
    }
    for (const Input& input : inputs)
        run(input);
    std::mt19937 random(static_cast<std::uint32_t>(seed));
    for (unsigned long n = 0; n < mutations; ++n)
        run(mutated(inputs[random() % inputs.size()], random));
    std::printf("%zu inputs and %lu mutations\n", inputs.size(), mutations);
    return 0;
}
