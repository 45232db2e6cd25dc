import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

/** Packets in direct buffers outside Java's heap: compressed and decompressed by zlib, some kept for a while. */
public class Buffers {
    public static void main(String[] arguments) throws Exception {
        int packets = Integer.parseInt(arguments[0]);
        ArrayDeque<ByteBuffer> kept = new ArrayDeque<>();
        long bytes = 0;
        for (int n = 0; n < packets; n++) {
            ByteBuffer packet = ByteBuffer.allocateDirect(2000 + n * 37 % 30000);
            while (packet.remaining() > 8) packet.putLong(n % 100);
            packet.flip();
            Deflater deflater = new Deflater(1);
            deflater.setInput(packet);
            deflater.finish();
            ByteBuffer small = ByteBuffer.allocateDirect(33000);
            deflater.deflate(small);
            deflater.end();
            small.flip();
            Inflater inflater = new Inflater();
            inflater.setInput(small);
            bytes += inflater.inflate(new byte[40000]);
            inflater.end();
            kept.add(small);
            if (kept.size() > 200) kept.poll();
        }
        System.out.println(bytes);
    }
}
