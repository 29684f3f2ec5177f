#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace trunkline::util {

/// Something on the heap that travels between threads in a list of its own kind. The control thread makes and
/// destroys nodes; engine threads only link them, so that they never enter the allocator.
struct Node {
    Node() = default;
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;
    virtual ~Node() = default;

    Node* next_node = nullptr;
};

/// A lock-free list that many threads push to and one thread takes whole.
class NodeStack {
  public:
    NodeStack() = default;
    NodeStack(const NodeStack&) = delete;
    NodeStack& operator=(const NodeStack&) = delete;
    ~NodeStack() { destroy(take_newest_first()); }

    /// Push a node; the stack owns it until it is taken.
    void push(Node* node) {
        node->next_node = head_.load(std::memory_order_relaxed);
        while (!head_.compare_exchange_weak(node->next_node, node, std::memory_order_release,
                                            std::memory_order_relaxed)) {
        }
    }

    bool empty() const { return head_.load(std::memory_order_relaxed) == nullptr; }

    /// Take all nodes, the newest first; the caller owns them.
    Node* take_newest_first() { return head_.exchange(nullptr, std::memory_order_acquire); }

    /// Take all nodes in the order they were pushed.
    Node* take_oldest_first() {
        Node* ordered = nullptr;
        for (Node* node = take_newest_first(); node != nullptr;) {
            Node* following = node->next_node;
            node->next_node = ordered;
            ordered = node;
            node = following;
        }
        return ordered;
    }

    /// Destroy a list that was taken.
    static void destroy(Node* list) {
        while (list != nullptr) {
            delete std::exchange(list, list->next_node);
        }
    }

  private:
    std::atomic<Node*> head_ = nullptr;
};

}  // namespace trunkline::util
