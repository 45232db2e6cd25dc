// Threads that share maps, memory outside the heap, compression in native code, many short threads.

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import java.util.zip.CRC32;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

public final class Tour {
    private static final ConcurrentHashMap<String, List<Integer>> SHARED = new ConcurrentHashMap<>();

    private static long work(int seed) throws Exception {
        CRC32 crc = new CRC32();
        long sum = 0;
        for (int round = 0; round < 200; round++) {
            ByteBuffer direct = ByteBuffer.allocateDirect(1 + (seed * 7919 + round * 131) % 60_000);
            while (direct.remaining() >= 4) direct.putInt(round * seed);
            byte[] bytes = new byte[direct.flip().remaining()];
            direct.get(bytes);

            Deflater deflater = new Deflater(1 + round % 9);
            deflater.setInput(bytes);
            deflater.finish();
            byte[] packed = new byte[bytes.length + 100];
            int length = deflater.deflate(packed);
            deflater.end();
            Inflater inflater = new Inflater();
            inflater.setInput(packed, 0, length);
            byte[] back = new byte[bytes.length];
            sum += inflater.inflate(back);
            inflater.end();
            crc.update(back);

            int number = round;
            SHARED.compute("key " + (round * seed) % 100, (key, list) -> {
                List<Integer> numbers = list == null ? new ArrayList<>() : list;
                numbers.add(number);
                return numbers;
            });
        }
        return sum + crc.getValue();
    }

    public static void main(String[] arguments) throws Exception {
        for (int round = 0; round < Integer.parseInt(arguments[0]); round++) {
            var pool = Executors.newFixedThreadPool(8);
            var results = new ArrayList<Future<Long>>();
            for (int i = 1; i <= 8; i++) {
                int seed = i + round;
                results.add(pool.submit(() -> work(seed)));
            }
            for (var result : results) System.out.print(result.get() + " ");
            System.out.println();
            pool.shutdown();
        }
        AtomicLong count = new AtomicLong();
        for (int i = 0; i < 300; i++) {
            Thread thread = new Thread(() -> count.addAndGet(new long[1000].length));
            thread.start();
            thread.join();
        }
        long numbers = SHARED.values().stream().mapToLong(List::size).sum();
        System.out.println(count + " " + numbers + " all threads are done");
    }
}
