<?xml version="1.0"?>
<!-- Orders, grouped by city. -->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:key name="city" match="order" use="customer/city"/>
  <xsl:template match="/orders">
    <cities>
      <xsl:for-each select="order[generate-id() = generate-id(key('city', customer/city)[1])]">
        <xsl:sort select="customer/city"/>
        <city name="{customer/city}" orders="{count(key('city', customer/city))}">
          <xsl:for-each select="key('city', customer/city)">
            <order number="{number}"><xsl:value-of select="concat(customer/name, ' ', count(lines))"/></order>
          </xsl:for-each>
        </city>
      </xsl:for-each>
    </cities>
  </xsl:template>
</xsl:stylesheet>
