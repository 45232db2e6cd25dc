/* masu.hpp: heaps of masu.h as the memory of C++ containers.
 *
 * It needs C++11 or later, and C++17 or later for `masu::memory_resource`; nothing of it is in the library. A
 * program links libmasu.so or libmasu.a as for masu.h.
 *
 *     masu::heap heap;
 *     masu::memory_resource resource(heap);
 *     std::pmr::vector<std::pmr::string> words(&resource);
 *     std::vector<int, masu::allocator<int>> numbers(heap);
 *
 * A heap outlives the containers that use it, unless nothing of theirs is touched any more, destructors included:
 * then `clear`, or the end of the heap, frees all blocks at once. Any thread may use any heap. Where there is no
 * memory, `std::bad_alloc` is thrown, or the program ends if it is compiled without exceptions.
 */
#ifndef MASU_HPP
#define MASU_HPP

#include <masu.h>

#if __cplusplus < 201103L
#error "masu.hpp needs C++11 or later"
#endif

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <type_traits>

#if __cplusplus >= 201703L && defined(__has_include)
#if __has_include(<memory_resource>)
#include <memory_resource>
#define MASU_HAS_MEMORY_RESOURCE 1
#endif
#endif

namespace masu {

namespace detail {

[[noreturn]] inline void no_memory()
{
#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
    throw std::bad_alloc();
#else
    std::abort();
#endif
}

inline void *allocate(masu_heap_t *heap, std::size_t size, std::size_t align)
{
    /* Every block is aligned to 16 bytes. */
    void *block = align <= 16 ? masu_heap_malloc(heap, size) : masu_heap_aligned_alloc(heap, align, size);
    if (block == nullptr) {
        no_memory();
    }
    return block;
}

} /* namespace detail */

/* A heap that ends with this object, and with it all its blocks. It can be moved, and not be copied. A heap that
 * was moved from may be assigned to and destroyed, no more. */
class heap {
public:
    heap() : handle_(masu_heap_new())
    {
        if (handle_ == nullptr) {
            detail::no_memory();
        }
    }

    heap(heap &&other) noexcept : handle_(other.handle_) { other.handle_ = nullptr; }

    heap &operator=(heap &&other) noexcept
    {
        if (this != &other) {
            masu_heap_destroy(handle_);
            handle_ = other.handle_;
            other.handle_ = nullptr;
        }
        return *this;
    }

    heap(const heap &) = delete;
    heap &operator=(const heap &) = delete;

    ~heap() { masu_heap_destroy(handle_); }

    /* Frees every block; the heap stays usable. */
    void clear() noexcept { masu_heap_clear(handle_); }

    /* For the functions of masu.h. */
    masu_heap_t *get() const noexcept { return handle_; }

    struct masu_heap_statistics statistics() const noexcept
    {
        struct masu_heap_statistics counts;
        masu_heap_statistics(handle_, &counts, sizeof counts);
        return counts;
    }

private:
    masu_heap_t *handle_;
};

/* An allocator of containers. Two are equal where they allocate from the same heap. Containers that are moved or
 * swapped take their heap along; one that is assigned a copy stays in its own. */
template <typename T>
class allocator {
public:
    using value_type = T;
    using is_always_equal = std::false_type;
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;

    /* Not explicit, so that a heap can be passed where a container takes an allocator. */
    allocator(heap &from) noexcept : handle_(from.get()) {}

    template <typename U>
    allocator(const allocator<U> &other) noexcept : handle_(other.get())
    {
    }

    T *allocate(std::size_t count)
    {
        if (count > PTRDIFF_MAX / sizeof(T)) {
            detail::no_memory();
        }
        return static_cast<T *>(detail::allocate(handle_, count * sizeof(T), alignof(T)));
    }

    void deallocate(T *block, std::size_t) noexcept { std::free(block); }

    masu_heap_t *get() const noexcept { return handle_; }

private:
    masu_heap_t *handle_;
};

template <typename T, typename U>
bool operator==(const allocator<T> &left, const allocator<U> &right) noexcept
{
    return left.get() == right.get();
}

template <typename T, typename U>
bool operator!=(const allocator<T> &left, const allocator<U> &right) noexcept
{
    return left.get() != right.get();
}

#if defined(MASU_HAS_MEMORY_RESOURCE)

/* A heap as `std::pmr` wants it. Two are equal where they allocate from the same heap; without RTTI each equals
 * itself alone. */
class memory_resource final : public std::pmr::memory_resource {
public:
    explicit memory_resource(heap &from) noexcept : handle_(from.get()) {}

    masu_heap_t *get() const noexcept { return handle_; }

private:
    void *do_allocate(std::size_t size, std::size_t align) override
    {
        return detail::allocate(handle_, size, align);
    }

    void do_deallocate(void *block, std::size_t, std::size_t) override { std::free(block); }

    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
    {
#if defined(__cpp_rtti) || defined(__GXX_RTTI)
        const memory_resource *that = dynamic_cast<const memory_resource *>(&other);
        return that != nullptr && that->handle_ == handle_;
#else
        return this == &other;
#endif
    }

    masu_heap_t *handle_;
};

#endif /* MASU_HAS_MEMORY_RESOURCE */

} /* namespace masu */

#endif
